/* Fan-out by callbacks and by tasks. */
#include "suites/fan_out.h"

/* Echo servers: read up to 64 bytes, write what arrived, for ever. */

static bool
echo_proceed(fan_echo *self)
{
    if (CPB_UNLIKELY(self->op.result <= 0)) {
        if (self->op.result != -ECANCELED)
            self->state->failed++;
        return false;
    }
    if (self->sending)
        cpb_op_prepare(&self->op, CPB_OP_READ, &self->pair->server, self->buffer, FAN_BYTES, false);
    else
        cpb_op_prepare(&self->op, CPB_OP_WRITE, &self->pair->server, self->buffer, (size_t)self->op.result, true);
    self->sending = !self->sending;
    return true;
}

static void
echo_begin(fan_echo *self)
{
    self->sending = false;
    cpb_op_prepare(&self->op, CPB_OP_READ, &self->pair->server, self->buffer, FAN_BYTES, false);
}

static void
on_echo(cpb_op *op)
{
    fan_echo *self = CPB_CONTAINER_OF(op, fan_echo, op);
    while (echo_proceed(self)) {
        if (!cpb_op_start(op))
            return;
    }
}

static void
on_echo_begin(cpb_op *op)
{
    fan_echo *self = CPB_CONTAINER_OF(op, fan_echo, op);
    op->complete = on_echo;
    echo_begin(self);
    if (cpb_op_start(op))
        on_echo(op);
}

void
fan_start_echo_callback(fan_echo *echo)
{
    echo->op.complete = on_echo_begin;
    cpb_reactor_post(echo->state->base.reactor, &echo->op);
}

typedef struct echo_task {
    cpb_task base;
    fan_echo *echo;
} echo_task;

CPB_NOINLINE static void
destroy_echo(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(echo_task));
}

CPB_NOINLINE static cpb_frame *
resume_echo(cpb_frame *frame)
{
    echo_task *self = (echo_task *)(void *)frame;
    fan_echo *echo = self->echo;
    do {
        cpb_env_restore_allocator(self->base.env);
        if (CPB_LIKELY(frame->state == 1)) {
            if (!echo_proceed(echo)) {
                destroy_echo(frame);
                return NULL;
            }
        } else {
            frame->state = 1;
            echo_begin(echo);
        }
    } while (cpb_op_start(&echo->op));
    return NULL;
}

static void
resume_echo_op(cpb_op *op)
{
    cpb_frame_drive(CPB_CONTAINER_OF(op, fan_echo, op)->frame);
}

void
fan_start_echo_task(fan_echo *echo)
{
    net_base *base = &echo->state->base;
    cpb_task *task = net_task(base, sizeof(echo_task), resume_echo, destroy_echo);
    if (task == NULL)
        return;
    ((echo_task *)task)->echo = echo;
    echo->frame = &task->frame;
    echo->op.complete = resume_echo_op;
    cpb_reactor_post(base->reactor, &echo->op);
}

/* Sub-requests */

/* Prepares the write of a sub-request, or after it the read of its echo. False: it has arrived. */
static bool
sub_proceed(fan_sub *self)
{
    if (CPB_UNLIKELY(self->op.result != FAN_BYTES))
        self->state->failed++;
    else if (self->sending) {
        self->sending = false;
        cpb_op_prepare(&self->op, CPB_OP_READ, &self->pair->client, self->buffer, FAN_BYTES, true);
        return true;
    }
    self->state->subs++;
    return false;
}

static void
sub_begin(fan_sub *self)
{
    self->sending = true;
    cpb_op_prepare(&self->op, CPB_OP_WRITE, &self->pair->client, self->buffer, FAN_BYTES, true);
}

static void
end_parent(fan_state *state)
{
    if (--state->active == 0)
        cpb_reactor_stop(state->base.reactor);
}

/* Callbacks: the last arrival calls the join's continuation, which starts the next round. */

static void callback_round(fan_join *parent);

static void
callback_arrive(fan_join *join)
{
    if (!fan_arrive(join))
        return;
    if (join->above != NULL) {
        callback_arrive(join->above);
        return;
    }
    join->state->rounds++;
    callback_round(join);
}

static void
on_sub(cpb_op *op)
{
    fan_sub *self = CPB_CONTAINER_OF(op, fan_sub, op);
    while (sub_proceed(self)) {
        if (!cpb_op_start(op))
            return;
    }
    callback_arrive(self->join);
}

static void
callback_subs(fan_join *join)
{
    fan_state *state = join->state;
    for (unsigned i = 0; i < join->count; i++) {
        fan_sub *sub = fan_sub_at(state, join->first + i);
        sub->join = join;
        sub->op.complete = on_sub;
        sub_begin(sub);
        if (cpb_op_start(&sub->op))
            on_sub(&sub->op);
    }
}

static void
callback_round(fan_join *parent)
{
    fan_state *state = parent->state;
    if (!fan_claim(parent)) {
        end_parent(state);
        return;
    }
    if (state->groups == NULL) {
        callback_subs(parent);
        return;
    }
    for (unsigned i = 0; i < parent->count; i++) {
        fan_join *group = &state->groups[parent->first + i];
        group->left = group->count;
        callback_subs(group);
    }
}

typedef struct starter {
    cpb_op op; /* first */
    fan_join *parent;
} starter;

static void
on_start(cpb_op *op)
{
    fan_join *parent = ((starter *)(void *)op)->parent;
    cpb_resource_deallocate(parent->state->base.env.allocator, op, sizeof(starter), CPB_DEFAULT_ALIGN);
    callback_round(parent);
}

/* Posts the start of a parent; the op is a block of the frame allocator. */
static void
post_start(fan_join *parent, void (*complete)(cpb_op *))
{
    net_base *base = &parent->state->base;
    starter *self = cpb_resource_allocate(base->env.allocator, sizeof *self, CPB_DEFAULT_ALIGN);
    if (self == NULL) {
        atomic_store(&base->status, CPB_E_NO_MEMORY);
        return;
    }
    self->op = (cpb_op){.complete = complete};
    self->parent = parent;
    cpb_reactor_post(base->reactor, &self->op);
}

void
fan_start_callback(fan_join *parent)
{
    post_start(parent, on_start);
}

/* Tasks: a fresh coroutine for each sub-request and group of a round; the last arrival transfers to who waits. */

typedef struct sub_task {
    cpb_task base;
    fan_sub *sub;
} sub_task;

typedef struct join_task {
    cpb_task base;
    fan_join *join;
    unsigned next; /* to be started */
} join_task;

CPB_NOINLINE static void
destroy_sub(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(sub_task));
}

CPB_NOINLINE static void
destroy_join(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(join_task));
}

CPB_NOINLINE static cpb_frame *
resume_sub(cpb_frame *frame)
{
    sub_task *self = (sub_task *)(void *)frame;
    fan_sub *sub = self->sub;
    do {
        cpb_env_restore_allocator(self->base.env);
        if (CPB_LIKELY(frame->state == 1)) {
            if (!sub_proceed(sub)) {
                fan_join *join = sub->join;
                destroy_sub(frame);
                return fan_arrive(join) ? join->frame : NULL;
            }
        } else {
            frame->state = 1;
            sub_begin(sub);
        }
    } while (cpb_op_start(&sub->op));
    return NULL;
}

static void
resume_sub_op(cpb_op *op)
{
    cpb_frame_drive(CPB_CONTAINER_OF(op, fan_sub, op)->frame);
}

/* Spawns: makes the frame and runs it to its first suspension. Without memory the sub-request has failed. */
static void
spawn_sub(fan_join *join, fan_sub *sub)
{
    cpb_task *task = net_task(&join->state->base, sizeof(sub_task), resume_sub, destroy_sub);
    if (CPB_UNLIKELY(task == NULL)) {
        join->state->failed++;
        join->left--;
        return;
    }
    ((sub_task *)task)->sub = sub;
    sub->join = join;
    sub->frame = &task->frame;
    sub->op.complete = resume_sub_op;
    cpb_frame_drive(&task->frame);
}

/* A round's last arrival may come while its spawning is still on the stack: the extra count that the spawner holds
 * makes it the last one itself. */
static bool
spawn_subs(fan_join *join)
{
    join->left = join->count + 1;
    for (unsigned i = 0; i < join->count; i++)
        spawn_sub(join, fan_sub_at(join->state, join->first + i));
    return fan_arrive(join);
}

CPB_NOINLINE static cpb_frame *
resume_group(cpb_frame *frame)
{
    join_task *self = (join_task *)(void *)frame;
    fan_join *group = self->join;
    cpb_env_restore_allocator(self->base.env);
    if (frame->state == 0) {
        frame->state = 1;
        group->frame = frame;
        if (!spawn_subs(group))
            return NULL;
    }
    fan_join *above = group->above;
    destroy_join(frame);
    return fan_arrive(above) ? above->frame : NULL;
}

static void
spawn_group(fan_join *parent, fan_join *group)
{
    cpb_task *task = net_task(&parent->state->base, sizeof(join_task), resume_group, destroy_join);
    if (CPB_UNLIKELY(task == NULL)) {
        parent->state->failed++;
        parent->left--;
        return;
    }
    ((join_task *)task)->join = group;
    cpb_frame_drive(&task->frame);
}

static bool
spawn_round(fan_join *parent)
{
    fan_state *state = parent->state;
    if (state->groups == NULL)
        return spawn_subs(parent);
    parent->left = parent->count + 1;
    for (unsigned i = 0; i < parent->count; i++)
        spawn_group(parent, &state->groups[parent->first + i]);
    return fan_arrive(parent);
}

CPB_NOINLINE static cpb_frame *
resume_parent(cpb_frame *frame)
{
    join_task *self = (join_task *)(void *)frame;
    fan_join *parent = self->join;
    fan_state *state = parent->state;
    for (;;) {
        cpb_env_restore_allocator(self->base.env);
        if (frame->state == 1)
            state->rounds++;
        frame->state = 1;
        if (!fan_claim(parent)) {
            destroy_join(frame);
            end_parent(state);
            return NULL;
        }
        if (!spawn_round(parent))
            return NULL;
    }
}

static void
on_start_task(cpb_op *op)
{
    fan_join *parent = ((starter *)(void *)op)->parent;
    cpb_resource_deallocate(parent->state->base.env.allocator, op, sizeof(starter), CPB_DEFAULT_ALIGN);
    cpb_frame_drive(parent->frame);
}

void
fan_start_task(fan_join *parent)
{
    cpb_task *task = net_task(&parent->state->base, sizeof(join_task), resume_parent, destroy_join);
    if (task == NULL)
        return;
    ((join_task *)task)->join = parent;
    parent->frame = &task->frame;
    post_start(parent, on_start_task);
}
