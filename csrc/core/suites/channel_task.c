/* Cobalt-like contender: coroutines whose awaitables hold the operations' memory in the frame. */
#include "rt/gather.h"
#include "suites/channel_parts.h"

/* The outermost coroutine of a workload. */
typedef struct root {
    cpb_promise promise; /* first */
    cpb_channel_bench *bench;
    uint64_t left;
    size_t size;
    unsigned index;              /* in bench->roots */
    void (*abandon)(void *self); /* ends what it waits for, when it is destroyed suspended; NULL: nothing */
} root;

static void
destroy_root(cpb_frame *frame)
{
    root *self = (root *)(void *)frame;
    self->bench->roots[self->index] = NULL;
    cpb_promise_free(self, self->size);
}

static void
destroy_suspended(void *suspended)
{
    root *self = suspended;
    if (self->abandon != NULL)
        self->abandon(self);
    destroy_root(&self->promise.frame);
}

const cpb_channel_model cpb_channel_task_model = {destroy_suspended, true};

/* The ramp's common part. NULL when there is no memory. */
CPB_NOINLINE static void *
make_root(cpb_channel_bench *bench, uint64_t ops, size_t size, unsigned index, cpb_frame *(*resume)(cpb_frame *))
{
    root *self = cpb_promise_alloc(size);
    if (self == NULL)
        return NULL;
    self->promise.frame = (cpb_frame){resume, destroy_root, 0};
    self->promise.continuation = NULL;
    self->promise.executor = &bench->executor;
    self->promise.slot.handler = NULL;
    self->bench = bench;
    self->left = ops;
    self->size = size;
    self->index = index;
    self->abandon = NULL;
    bench->roots[index] = self;
    return self;
}

static cpb_frame *
end_root(root *self)
{
    destroy_root(&self->promise.frame);
    return NULL;
}

/* post */

typedef struct post_frame {
    root base;
    cpb_op op;
    cpb_op_awaitable awaitable;
} post_frame;

CPB_NOINLINE static cpb_frame *
resume_post(cpb_frame *frame)
{
    post_frame *self = (post_frame *)(void *)frame;
    cpb_payload payload;
    if (frame->state == 1)
        goto resumed;
    while (self->base.left > 0) {
        self->op.table = cpb_launder((void *)&cpb_post_table);
        cpb_op_awaitable_init(&self->awaitable, &self->op);
        frame->state = 1;
        if (!cpb_op_ready(&self->awaitable) && cpb_op_suspend(&self->awaitable, &self->base.promise))
            return NULL;
    resumed:
        self->base.bench->failures += !cpb_op_take(&self->awaitable, &payload);
        self->base.bench->done++;
        self->base.left--;
    }
    return end_root(&self->base);
}

bool
cpb_channel_task_post(cpb_channel_bench *bench, uint64_t ops)
{
    post_frame *self = make_root(bench, ops, sizeof *self, 0, resume_post);
    if (self == NULL)
        return false;
    cpb_frame_drive(&self->base.promise.frame);
    return true;
}

/* immediate: a send and a receive on a channel with room for one. The two awaitables' lifetimes do not overlap, so that
 * a compiler gives them one place in the frame. */

typedef struct immediate_frame {
    root base;
    cpb_channel_async op;
    cpb_op_awaitable awaitable;
} immediate_frame;

/* Begins an await; true when it suspends. */
static inline bool
await_channel(immediate_frame *self, const cpb_op_table *table, uint64_t value)
{
    self->op = (cpb_channel_async){{cpb_launder((void *)table)}, &self->base.bench->channels[0], value};
    cpb_op_awaitable_init(&self->awaitable, &self->op.op);
    return !cpb_op_ready(&self->awaitable) && cpb_op_suspend(&self->awaitable, &self->base.promise);
}

CPB_NOINLINE static cpb_frame *
resume_immediate(cpb_frame *frame)
{
    immediate_frame *self = (immediate_frame *)(void *)frame;
    cpb_channel_bench *bench = self->base.bench;
    cpb_payload payload;
    if (frame->state == 1)
        goto sent;
    if (frame->state == 2)
        goto received;
    while (self->base.left > 0) {
        frame->state = 1;
        if (await_channel(self, &cpb_channel_send_table, self->base.left))
            return NULL;
    sent:
        bench->failures += !cpb_op_take(&self->awaitable, &payload);
        bench->sent += self->base.left;
        frame->state = 2;
        if (await_channel(self, &cpb_channel_receive_table, 0))
            return NULL;
    received:
        bench->failures += !cpb_op_take(&self->awaitable, &payload);
        bench->received += payload.value;
        bench->done++;
        self->base.left--;
    }
    return end_root(&self->base);
}

bool
cpb_channel_task_immediate(cpb_channel_bench *bench, uint64_t ops)
{
    immediate_frame *self = make_root(bench, ops, sizeof *self, 0, resume_immediate);
    if (self == NULL)
        return false;
    cpb_frame_drive(&self->base.promise.frame);
    return true;
}

/* parallel: gather of two tasks that `use_task` makes of a send and a receive. */

typedef struct receiver receiver;

typedef struct wrapped_task {
    cpb_promise promise; /* first */
    cpb_cancel_signal signal;
    receiver *receiver;
    cpb_channel_async op;
    cpb_op_awaitable awaitable;
} wrapped_task;

/* A task as its parent holds and awaits it. */
struct receiver {
    wrapped_task *task; /* NULL once it has ended */
    bool done, ok;
    cpb_payload value;
};

static void
destroy_task(cpb_frame *frame)
{
    wrapped_task *self = (wrapped_task *)(void *)frame;
    cpb_cancel_clear(cpb_cancel_slot_of(&self->signal));
    self->receiver->task = NULL;
    cpb_promise_free(self, sizeof *self);
}

CPB_NOINLINE static cpb_frame *
resume_task(cpb_frame *frame)
{
    wrapped_task *self = (wrapped_task *)(void *)frame;
    if (frame->state == 0) {
        cpb_op_awaitable_init(&self->awaitable, &self->op.op);
        frame->state = 1;
        if (!cpb_op_ready(&self->awaitable) && cpb_op_suspend(&self->awaitable, &self->promise))
            return NULL;
    }
    receiver *to = self->receiver;
    to->ok = cpb_op_take(&self->awaitable, &to->value);
    to->done = true;
    cpb_frame *next = self->promise.continuation;
    destroy_task(frame);
    return next;
}

CPB_NOINLINE static bool
make_task(receiver *to, cpb_channel *channel, const cpb_op_table *table, uint64_t value)
{
    wrapped_task *self = cpb_promise_alloc(sizeof *self);
    to->task = self;
    to->done = false;
    if (CPB_UNLIKELY(self == NULL))
        return false;
    self->promise.frame = (cpb_frame){resume_task, destroy_task, 0};
    self->promise.continuation = NULL;
    self->promise.executor = NULL;
    self->promise.slot.handler = NULL;
    self->signal.handler = NULL;
    self->receiver = to;
    self->op = (cpb_channel_async){{cpb_launder((void *)table)}, channel, value};
    return true;
}

static inline bool
task_ready(receiver *from)
{
    return from->done;
}

static inline cpb_frame *
task_suspend(receiver *from, cpb_promise *promise)
{
    wrapped_task *task = from->task;
    task->promise.executor = promise->executor;
    task->promise.continuation = &promise->frame;
    task->promise.slot = cpb_cancel_slot_of(&task->signal);
    if (promise->slot.handler != NULL && CPB_UNLIKELY(!cpb_cancel_emplace(promise->slot, task, &task->signal))) {
        cpb_any_fail(promise->executor, CPB_E_NO_MEMORY);
        return NULL;
    }
    return &task->promise.frame;
}

static inline bool
task_take(receiver *from, cpb_payload *value)
{
    *value = from->value;
    return from->ok;
}

CPB_DEFINE_FORK(fork_task, receiver, task_ready, task_suspend, task_take)

typedef struct parallel_frame {
    root base;
    receiver sender, receiver;
    cpb_gather gather;
} parallel_frame;

static void
abandon_parallel(void *suspended)
{
    parallel_frame *self = suspended;
    cpb_gather_destroy(&self->gather);
    if (self->sender.task != NULL)
        destroy_task(&self->sender.task->promise.frame);
    if (self->receiver.task != NULL)
        destroy_task(&self->receiver.task->promise.frame);
}

CPB_NOINLINE static cpb_frame *
resume_parallel(cpb_frame *frame)
{
    parallel_frame *self = (parallel_frame *)(void *)frame;
    cpb_channel_bench *bench = self->base.bench;
    if (frame->state == 1)
        goto resumed;
    while (self->base.left > 0) {
        self->receiver.task = NULL;
        cpb_gather_init(&self->gather, cpb_launder((void *)fork_task), &self->sender, cpb_launder((void *)fork_task),
                        &self->receiver);
        frame->state = 1;
        self->base.abandon = abandon_parallel;
        if (CPB_UNLIKELY(!make_task(&self->sender, &bench->channels[0], &cpb_channel_send_table, self->base.left) ||
                         !make_task(&self->receiver, &bench->channels[0], &cpb_channel_receive_table, 0))) {
            cpb_any_fail(self->base.promise.executor, CPB_E_NO_MEMORY);
            return NULL;
        }
        if (!cpb_gather_ready(&self->gather, &self->base.promise) &&
            cpb_gather_suspend(&self->gather, &self->base.promise))
            return NULL;
    resumed:
        bench->failures += !cpb_gather_resume(&self->gather);
        bench->sent += self->base.left;
        bench->received += self->gather.results[1].value.value;
        cpb_gather_destroy(&self->gather);
        bench->done++;
        self->base.left--;
    }
    self->base.abandon = NULL;
    return end_root(&self->base);
}

bool
cpb_channel_task_parallel(cpb_channel_bench *bench, uint64_t ops)
{
    parallel_frame *self = make_root(bench, ops, sizeof *self, 0, resume_parallel);
    if (self == NULL)
        return false;
    cpb_frame_drive(&self->base.promise.frame);
    return true;
}

/* channel: gather of a write and a read on Cobalt's own channel. */

static inline bool
take_write(cpb_direct_op *op, cpb_payload *value)
{
    (void)value;
    return cpb_direct_write_resume(op);
}

static inline bool
take_read(cpb_direct_op *op, cpb_payload *value)
{
    (void)value;
    return cpb_direct_read_resume(op);
}

CPB_DEFINE_FORK(fork_write, cpb_direct_op, cpb_direct_write_ready, cpb_direct_write_suspend, take_write)
CPB_DEFINE_FORK(fork_read, cpb_direct_op, cpb_direct_read_ready, cpb_direct_read_suspend, take_read)

typedef struct channel_frame {
    root base;
    cpb_direct_op write, read;
    cpb_gather gather;
} channel_frame;

static void
abandon_channel(void *suspended)
{
    cpb_gather_destroy(&((channel_frame *)suspended)->gather);
}

CPB_NOINLINE static cpb_frame *
resume_channel(cpb_frame *frame)
{
    channel_frame *self = (channel_frame *)(void *)frame;
    cpb_channel_bench *bench = self->base.bench;
    if (frame->state == 1)
        goto resumed;
    while (self->base.left > 0) {
        cpb_direct_op_init(&self->write, &bench->direct[0]);
        cpb_direct_op_init(&self->read, &bench->direct[0]);
        cpb_gather_init(&self->gather, cpb_launder((void *)fork_write), &self->write, cpb_launder((void *)fork_read),
                        &self->read);
        frame->state = 1;
        self->base.abandon = abandon_channel;
        if (!cpb_gather_ready(&self->gather, &self->base.promise) &&
            cpb_gather_suspend(&self->gather, &self->base.promise))
            return NULL;
    resumed:
        bench->failures += !cpb_gather_resume(&self->gather);
        bench->sent += self->gather.results[0].state == CPB_BRANCH_VALUE;
        bench->received += self->gather.results[1].state == CPB_BRANCH_VALUE;
        cpb_gather_destroy(&self->gather);
        bench->done++;
        self->base.left--;
    }
    self->base.abandon = NULL;
    return end_root(&self->base);
}

bool
cpb_channel_task_channel(cpb_channel_bench *bench, uint64_t ops)
{
    channel_frame *self = make_root(bench, ops, sizeof *self, 0, resume_channel);
    if (self == NULL)
        return false;
    cpb_frame_drive(&self->base.promise.frame);
    return true;
}

/* pingpong: two coroutines, two of Cobalt's own channels. The one writes, then reads; the other reads, then writes. */

typedef struct player {
    root base;
    cpb_direct_op op;
} player;

CPB_NOINLINE static cpb_frame *
resume_server(cpb_frame *frame)
{
    player *self = (player *)(void *)frame;
    cpb_channel_bench *bench = self->base.bench;
    cpb_frame *next;
    if (frame->state == 1)
        goto written;
    if (frame->state == 2)
        goto answered;
    while (self->base.left > 0) {
        cpb_direct_op_init(&self->op, &bench->direct[0]);
        frame->state = 1;
        if (!cpb_direct_write_ready(&self->op)) {
            next = cpb_direct_write_suspend(&self->op, &self->base.promise);
            if (next != frame)
                return next;
        }
    written:
        bench->failures += !cpb_direct_write_resume(&self->op);
        bench->sent++;
        cpb_direct_op_init(&self->op, &bench->direct[1]);
        frame->state = 2;
        if (!cpb_direct_read_ready(&self->op)) {
            next = cpb_direct_read_suspend(&self->op, &self->base.promise);
            if (next != frame)
                return next;
        }
    answered:
        bench->failures += !cpb_direct_read_resume(&self->op);
        bench->done++;
        self->base.left--;
    }
    return end_root(&self->base);
}

CPB_NOINLINE static cpb_frame *
resume_returner(cpb_frame *frame)
{
    player *self = (player *)(void *)frame;
    cpb_channel_bench *bench = self->base.bench;
    cpb_frame *next;
    if (frame->state == 1)
        goto read;
    if (frame->state == 2)
        goto answered;
    while (self->base.left > 0) {
        cpb_direct_op_init(&self->op, &bench->direct[0]);
        frame->state = 1;
        if (!cpb_direct_read_ready(&self->op)) {
            next = cpb_direct_read_suspend(&self->op, &self->base.promise);
            if (next != frame)
                return next;
        }
    read:
        bench->failures += !cpb_direct_read_resume(&self->op);
        bench->received++;
        cpb_direct_op_init(&self->op, &bench->direct[1]);
        frame->state = 2;
        if (!cpb_direct_write_ready(&self->op)) {
            next = cpb_direct_write_suspend(&self->op, &self->base.promise);
            if (next != frame)
                return next;
        }
    answered:
        bench->failures += !cpb_direct_write_resume(&self->op);
        self->base.left--;
    }
    return end_root(&self->base);
}

bool
cpb_channel_task_pingpong(cpb_channel_bench *bench, uint64_t ops)
{
    player *returner = make_root(bench, ops, sizeof *returner, 1, resume_returner);
    player *server = returner != NULL ? make_root(bench, ops, sizeof *server, 0, resume_server) : NULL;
    if (server == NULL)
        return false;
    cpb_frame_drive(&returner->base.promise.frame);
    cpb_frame_drive(&server->base.promise.frame);
    return true;
}
