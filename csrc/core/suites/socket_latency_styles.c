/* Ping-pong by callbacks and by a task: client writes n bytes, server reads them and writes them back, client reads. */
#include "suites/socket_latency.h"

#include "base/compiler.h"

/* Callbacks: a state machine of four handlers. What completes inline calls its handler directly; the budget bounds that
 * nesting. */

static void
step(latency_actor *self, cpb_op_kind kind, cpb_socket *socket, void *data, void (*handler)(cpb_op *))
{
    cpb_op_prepare(&self->op, kind, socket, data, self->state->message, true);
    self->op.complete = handler;
    if (cpb_op_start(&self->op))
        handler(&self->op);
}

static void callback_begin(latency_actor *self);

static void
on_back(cpb_op *op)
{
    latency_actor *self = CPB_CONTAINER_OF(op, latency_actor, op);
    latency_check(self, op->result);
    latency_record(self);
    callback_begin(self);
}

static void
on_echoed(cpb_op *op)
{
    latency_actor *self = CPB_CONTAINER_OF(op, latency_actor, op);
    latency_check(self, op->result);
    step(self, CPB_OP_READ, &self->pair->client, self->back, on_back);
}

static void
on_received(cpb_op *op)
{
    latency_actor *self = CPB_CONTAINER_OF(op, latency_actor, op);
    latency_check(self, op->result);
    step(self, CPB_OP_WRITE, &self->pair->server, self->in, on_echoed);
}

static void
on_sent(cpb_op *op)
{
    latency_actor *self = CPB_CONTAINER_OF(op, latency_actor, op);
    latency_check(self, op->result);
    step(self, CPB_OP_READ, &self->pair->server, self->in, on_received);
}

static void
callback_begin(latency_actor *self)
{
    if (latency_claim(self))
        step(self, CPB_OP_WRITE, &self->pair->client, self->out, on_sent);
}

static void
on_posted(cpb_op *op)
{
    callback_begin(CPB_CONTAINER_OF(op, latency_actor, op));
}

void
latency_start_callback(latency_actor *actor)
{
    actor->op.complete = on_posted;
    cpb_reactor_post(actor->state->base.reactor, &actor->op);
}

/* Task: one coroutine, which awaits each operation. */

typedef struct pingpong {
    cpb_task base;
    latency_actor *actor;
} pingpong;

enum { BEGIN, SENT, RECEIVED, ECHOED, BACK };

CPB_NOINLINE static void
destroy_pingpong(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(pingpong));
}

static void
resume_awaiting(cpb_op *op)
{
    cpb_frame_drive(CPB_CONTAINER_OF(op, latency_actor, op)->frame);
}

CPB_NOINLINE static cpb_frame *
resume_pingpong(cpb_frame *frame)
{
    pingpong *self = (pingpong *)(void *)frame;
    latency_actor *actor = self->actor;
    size_t size = actor->state->message;
    do {
        cpb_env_restore_allocator(self->base.env);
        switch (self->base.frame.state) {
        case BACK:
            latency_check(actor, actor->op.result);
            latency_record(actor);
            /* fallthrough */
        case BEGIN:
            if (!latency_claim(actor)) {
                destroy_pingpong(frame);
                return NULL;
            }
            cpb_op_prepare(&actor->op, CPB_OP_WRITE, &actor->pair->client, actor->out, size, true);
            self->base.frame.state = SENT;
            break;
        case SENT:
            latency_check(actor, actor->op.result);
            cpb_op_prepare(&actor->op, CPB_OP_READ, &actor->pair->server, actor->in, size, true);
            self->base.frame.state = RECEIVED;
            break;
        case RECEIVED:
            latency_check(actor, actor->op.result);
            cpb_op_prepare(&actor->op, CPB_OP_WRITE, &actor->pair->server, actor->in, size, true);
            self->base.frame.state = ECHOED;
            break;
        default:
            latency_check(actor, actor->op.result);
            cpb_op_prepare(&actor->op, CPB_OP_READ, &actor->pair->client, actor->back, size, true);
            self->base.frame.state = BACK;
        }
    } while (cpb_op_start(&actor->op));
    return NULL;
}

/* The frame is made here and resumed by the loop. */
void
latency_start_task(latency_actor *actor)
{
    net_base *base = &actor->state->base;
    cpb_task *task = net_task(base, sizeof(pingpong), resume_pingpong, destroy_pingpong);
    if (task == NULL)
        return;
    ((pingpong *)task)->actor = actor;
    actor->frame = &task->frame;
    actor->op.complete = resume_awaiting;
    cpb_reactor_post(base->reactor, &actor->op);
}
