/* HTTP clients and servers by callbacks and by tasks. Both read in a loop until the message is whole. */
#include "suites/http_server.h"

/* Callbacks. Returns instead of nesting: an actor's own loop goes on while its operations complete inline. */

static void
prepare_send(http_actor *self)
{
    const char *text = self->is_client ? http_request : http_response;
    size_t size = self->is_client ? HTTP_REQUEST_BYTES : HTTP_RESPONSE_BYTES;
    self->sending = true;
    /* The kernel only reads it. */
    cpb_op_prepare(&self->op, CPB_OP_WRITE, self->socket, (void *)(uintptr_t)text, size, true);
}

static bool
prepare_receive(http_actor *self)
{
    size_t size;
    void *room = http_room(&self->text, &size);
    self->sending = false;
    if (CPB_UNLIKELY(room == NULL)) {
        self->state->failed++;
        return false;
    }
    cpb_op_prepare(&self->op, CPB_OP_READ, self->socket, room, size, false);
    return true;
}

/* A client begins the next op, or ends; the last one to end stops the loop. */
static bool
next_request(http_actor *self)
{
    if (CPB_LIKELY(http_claim(self->state))) {
        prepare_send(self);
        return true;
    }
    if (http_last(self->state))
        cpb_reactor_stop(self->state->base.reactor);
    return false;
}

static bool
end_with_error(http_actor *self)
{
    /* A server's read ends with -ECANCELED when the run is torn down. */
    if (self->op.result != -ECANCELED)
        self->state->failed++;
    if (self->is_client && http_last(self->state))
        cpb_reactor_stop(self->state->base.reactor);
    return false;
}

/* After an operation: prepares the next one. False: the actor has ended. */
static inline __attribute__((always_inline)) bool
proceed(http_actor *self)
{
    if (CPB_UNLIKELY(self->op.result <= 0))
        return end_with_error(self);
    if (self->sending)
        return prepare_receive(self);
    size_t length;
    if (CPB_UNLIKELY(!http_take(self, (size_t)self->op.result, &length)))
        return prepare_receive(self);
    http_erase(&self->text, length);
    if (self->is_client) {
        self->ops++;
        return next_request(self);
    }
    prepare_send(self);
    return true;
}

static void
on_done(cpb_op *op)
{
    http_actor *self = CPB_CONTAINER_OF(op, http_actor, op);
    while (proceed(self)) {
        if (!cpb_op_start(op))
            return;
    }
}

static void
on_begin(cpb_op *op)
{
    http_actor *self = CPB_CONTAINER_OF(op, http_actor, op);
    op->complete = on_done;
    bool begins = self->is_client ? next_request(self) : prepare_receive(self);
    if (begins && cpb_op_start(op))
        on_done(op);
}

void
http_start_callback(http_actor *actor)
{
    actor->op.complete = on_begin;
    cpb_reactor_post(actor->state->base.reactor, &actor->op);
}

typedef struct connection {
    cpb_task base;
    http_actor *actor;
} connection;

CPB_NOINLINE static void
destroy_connection(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(connection));
}

static void
resume_awaiting(cpb_op *op)
{
    cpb_frame_drive(CPB_CONTAINER_OF(op, http_actor, op)->frame);
}

CPB_NOINLINE static cpb_frame *
resume_connection(cpb_frame *frame)
{
    connection *self = (connection *)(void *)frame;
    http_actor *actor = self->actor;
    do {
        cpb_env_restore_allocator(self->base.env);
        bool goes_on;
        if (CPB_LIKELY(frame->state == 1)) {
            goes_on = proceed(actor);
        } else {
            frame->state = 1;
            goes_on = actor->is_client ? next_request(actor) : prepare_receive(actor);
        }
        if (CPB_UNLIKELY(!goes_on)) {
            destroy_connection(frame);
            return NULL;
        }
    } while (cpb_op_start(&actor->op));
    return NULL;
}

void
http_start_task(http_actor *actor)
{
    net_base *base = &actor->state->base;
    cpb_task *task = net_task(base, sizeof(connection), resume_connection, destroy_connection);
    if (task == NULL)
        return;
    ((connection *)task)->actor = actor;
    actor->frame = &task->frame;
    actor->op.complete = resume_awaiting;
    cpb_reactor_post(base->reactor, &actor->op);
}
