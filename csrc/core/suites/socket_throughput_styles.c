/* Writers and readers by callbacks and by tasks. */
#include "suites/socket_throughput.h"

static void
on_moved(cpb_op *op)
{
    throughput_actor *self = CPB_CONTAINER_OF(op, throughput_actor, op);
    while (throughput_account(self, op->result)) {
        throughput_prepare(self);
        if (!cpb_op_start(op))
            return;
    }
}

static void
on_begin(cpb_op *op)
{
    throughput_actor *self = CPB_CONTAINER_OF(op, throughput_actor, op);
    op->complete = on_moved;
    throughput_prepare(self);
    if (cpb_op_start(op))
        on_moved(op);
}

void
throughput_start_callback(throughput_actor *actor)
{
    actor->op.complete = on_begin;
    cpb_reactor_post(actor->state->base.reactor, &actor->op);
}

typedef struct mover {
    cpb_task base;
    throughput_actor *actor;
} mover;

CPB_NOINLINE static void
destroy_mover(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(mover));
}

static void
resume_awaiting(cpb_op *op)
{
    cpb_frame_drive(CPB_CONTAINER_OF(op, throughput_actor, op)->frame);
}

CPB_NOINLINE static cpb_frame *
resume_mover(cpb_frame *frame)
{
    mover *self = (mover *)(void *)frame;
    throughput_actor *actor = self->actor;
    do {
        cpb_env_restore_allocator(self->base.env);
        if (CPB_LIKELY(frame->state == 1) && !throughput_account(actor, actor->op.result)) {
            destroy_mover(frame);
            return NULL;
        }
        frame->state = 1;
        throughput_prepare(actor);
    } while (cpb_op_start(&actor->op));
    return NULL;
}

void
throughput_start_task(throughput_actor *actor)
{
    net_base *base = &actor->state->base;
    cpb_task *task = net_task(base, sizeof(mover), resume_mover, destroy_mover);
    if (task == NULL)
        return;
    ((mover *)task)->actor = actor;
    actor->frame = &task->frame;
    actor->op.complete = resume_awaiting;
    cpb_reactor_post(base->reactor, &actor->op);
}
