/* Accept churn by callbacks and by tasks. All connects of an op are started first, then one accept is outstanding at a
 * time; the byte is written after connect and accept have completed. */
#include "suites/accept_churn.h"

static unsigned
links_of(const churn_loop *self)
{
    return self->state->burst > 0 ? self->state->burst : 1;
}

static void
prepare_connect(churn_link *link)
{
    link->op.actor = &link->loop->actor;
    cpb_op_prepare(&link->op, CPB_OP_CONNECT, &link->client, &link->loop->address, sizeof link->loop->address, false);
}

static void
prepare_accept(churn_loop *self)
{
    self->op.actor = &self->actor;
    cpb_op_prepare(&self->op, CPB_OP_ACCEPT, &self->listener, NULL, 0, false);
}

static void
prepare_write(churn_loop *self)
{
    self->sent++;
    cpb_op_prepare(&self->op, CPB_OP_WRITE, &self->links[0].client, &self->sent, 1, true);
}

static void
prepare_read(churn_loop *self)
{
    cpb_op_prepare(&self->op, CPB_OP_READ, &self->links[0].server, &self->received, 1, true);
}

/* The end of an op. */
static void
end_cycle(churn_loop *self)
{
    churn_close(self);
    self->cycles++;
    self->state->done++;
}

/* Callbacks */

static void callback_cycle(churn_loop *self);

static void
give_up(churn_loop *self)
{
    self->state->failed++;
    churn_close(self);
    self->ended = true;
}

static void
on_read(cpb_op *op)
{
    churn_loop *self = CPB_CONTAINER_OF(op, churn_loop, op);
    if (CPB_UNLIKELY(op->result != 1 || self->received != self->sent)) {
        give_up(self);
        return;
    }
    end_cycle(self);
    callback_cycle(self);
}

static void
on_written(cpb_op *op)
{
    churn_loop *self = CPB_CONTAINER_OF(op, churn_loop, op);
    if (CPB_UNLIKELY(op->result != 1)) {
        give_up(self);
        return;
    }
    prepare_read(self);
    op->complete = on_read;
    if (cpb_op_start(op))
        on_read(op);
}

/* A connect or an accept has completed; the last of them goes on. */
static void
callback_arrive(churn_loop *self)
{
    if (--self->pending > 0)
        return;
    if (self->accepted < links_of(self)) { /* one of them failed */
        give_up(self);
        return;
    }
    if (self->state->burst > 0) {
        end_cycle(self);
        callback_cycle(self);
        return;
    }
    prepare_write(self);
    self->op.complete = on_written;
    if (cpb_op_start(&self->op))
        on_written(&self->op);
}

static void
on_connected(cpb_op *op)
{
    churn_loop *self = ((churn_link *)(void *)op)->loop;
    if (CPB_UNLIKELY(op->result != 0))
        self->state->failed++;
    callback_arrive(self);
}

static void
on_accepted(cpb_op *op)
{
    churn_loop *self = CPB_CONTAINER_OF(op, churn_loop, op);
    while (churn_accepted(self, op->result) && self->accepted < links_of(self)) {
        self->pending--; /* not the last one: more are to be accepted */
        prepare_accept(self);
        if (!cpb_op_start(op))
            return;
    }
    /* After a failure, nobody waits for the accepts that are missing. */
    self->pending -= self->accepted < links_of(self) ? links_of(self) - self->accepted - 1 : 0;
    callback_arrive(self);
}

static void
callback_cycle(churn_loop *self)
{
    if (!churn_claim(self->state)) {
        self->ended = true;
        return;
    }
    if (CPB_UNLIKELY(!churn_open(self))) {
        self->ended = true;
        return;
    }
    unsigned count = links_of(self);
    self->pending = 2 * count;
    for (unsigned i = 0; i < count; i++) {
        churn_link *link = &self->links[i];
        prepare_connect(link);
        link->op.complete = on_connected;
        if (cpb_op_start(&link->op))
            on_connected(&link->op);
    }
    prepare_accept(self);
    self->op.complete = on_accepted;
    if (cpb_op_start(&self->op))
        on_accepted(&self->op);
}

static void
on_begin(cpb_op *op)
{
    callback_cycle(CPB_CONTAINER_OF(op, churn_loop, op));
}

void
churn_start_callback(churn_loop *loop)
{
    loop->op.actor = &loop->actor;
    loop->op.complete = on_begin;
    cpb_reactor_post(loop->state->base.reactor, &loop->op);
}

/* Tasks: the connects run in coroutines of their own; the parent accepts, then waits for the connects that are still
 * outstanding. */

typedef struct connector {
    cpb_task base;
    churn_link *link;
} connector;

typedef struct churn_task {
    cpb_task base;
    churn_loop *loop;
} churn_task;

CPB_NOINLINE static void
destroy_connector(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(connector));
}

CPB_NOINLINE static void
destroy_churn(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(churn_task));
}

CPB_NOINLINE static cpb_frame *
resume_connector(cpb_frame *frame)
{
    connector *self = (connector *)(void *)frame;
    churn_link *link = self->link;
    churn_loop *loop = link->loop;
    cpb_env_restore_allocator(self->base.env);
    if (frame->state == 0) {
        frame->state = 1;
        prepare_connect(link);
        if (!cpb_op_start(&link->op))
            return NULL;
    }
    if (CPB_UNLIKELY(link->op.result != 0))
        loop->state->failed++;
    destroy_connector(frame);
    /* The last to arrive transfers to the parent, which counts itself while it accepts. */
    return --loop->pending == 0 ? loop->frame : NULL;
}

static void
resume_link(cpb_op *op)
{
    cpb_frame_drive(((churn_link *)(void *)op)->frame);
}

static void
spawn_connector(churn_loop *self, churn_link *link)
{
    cpb_task *task = net_task(&self->state->base, sizeof(connector), resume_connector, destroy_connector);
    if (CPB_UNLIKELY(task == NULL)) {
        self->state->failed++;
        self->pending--;
        return;
    }
    ((connector *)task)->link = link;
    link->frame = &task->frame;
    link->op.complete = resume_link;
    cpb_frame_drive(&task->frame);
}

enum { BEGIN, ACCEPTING, JOINING, WRITING, READING };

/* Runs the parent up to its next operation. False: it has ended, and its frame is gone; `*waits`: for its connectors.
 */
static bool
proceed(cpb_frame *frame, churn_loop *self, bool *waits)
{
    unsigned count = links_of(self);
    for (;;) {
        switch (frame->state) {
        case ACCEPTING:
            if (churn_accepted(self, self->op.result) && self->accepted < count)
                break; /* prepared again below */
            frame->state = JOINING;
            if (--self->pending > 0) {
                *waits = true;
                return true;
            }
            continue;
        case JOINING:
            if (CPB_UNLIKELY(self->accepted < count)) {
                give_up(self);
                return false;
            }
            if (self->state->burst == 0) {
                prepare_write(self);
                frame->state = WRITING;
                return true;
            }
            end_cycle(self);
            frame->state = BEGIN;
            continue;
        case WRITING:
            if (CPB_UNLIKELY(self->op.result != 1)) {
                give_up(self);
                return false;
            }
            prepare_read(self);
            frame->state = READING;
            return true;
        case READING:
            if (CPB_UNLIKELY(self->op.result != 1 || self->received != self->sent)) {
                give_up(self);
                return false;
            }
            end_cycle(self);
            frame->state = BEGIN;
            continue;
        default:
            if (!churn_claim(self->state) || !churn_open(self)) {
                self->ended = true;
                return false;
            }
            self->pending = count + 1;
            for (unsigned i = 0; i < count; i++)
                spawn_connector(self, &self->links[i]);
            frame->state = ACCEPTING;
        }
        prepare_accept(self);
        return true;
    }
}

CPB_NOINLINE static cpb_frame *
resume_churn(cpb_frame *frame)
{
    churn_task *self = (churn_task *)(void *)frame;
    churn_loop *loop = self->loop;
    bool waits = false;
    do {
        cpb_env_restore_allocator(self->base.env);
        if (!proceed(frame, loop, &waits)) {
            destroy_churn(frame);
            return NULL;
        }
    } while (!waits && cpb_op_start(&loop->op));
    return NULL;
}

static void
resume_loop(cpb_op *op)
{
    cpb_frame_drive(CPB_CONTAINER_OF(op, churn_loop, op)->frame);
}

void
churn_start_task(churn_loop *loop)
{
    net_base *base = &loop->state->base;
    cpb_task *task = net_task(base, sizeof(churn_task), resume_churn, destroy_churn);
    if (task == NULL)
        return;
    ((churn_task *)task)->loop = loop;
    loop->frame = &task->frame;
    loop->op.actor = &loop->actor;
    loop->op.complete = resume_loop;
    cpb_reactor_post(base->reactor, &loop->op);
}
