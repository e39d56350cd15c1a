/* Asio-like contender: awaitable threads, frames and operations from the thread's cache. */
#include "rt/co_group.h"
#include "suites/channel_parts.h"

/* The entry of a spawned coroutine: awaits its function's frame. */
typedef struct entry {
    cpb_co_entry base; /* first */
    cpb_channel_bench *bench;
    unsigned index;
    cpb_co_frame *main;
} entry;

static void
destroy_entry(cpb_frame *frame)
{
    entry *self = (entry *)(void *)frame;
    self->bench->roots[self->index] = NULL;
    cpb_co_free(self, sizeof *self);
}

CPB_NOINLINE static cpb_frame *
resume_entry(cpb_frame *frame)
{
    entry *self = (entry *)(void *)frame;
    if (frame->state == 0) {
        frame->state = 1;
        cpb_co_push(self->main, &self->base.base);
        return NULL;
    }
    self->bench->failures += !cpb_co_take_void(self->main);
    cpb_co_pop(&self->base.base);
    return NULL;
}

static void
destroy_stack(void *suspended)
{
    entry *self = suspended;
    cpb_co_frame *unstarted = self->base.base.frame.state == 0 ? self->main : NULL;
    cpb_co_destroy(&self->base);
    if (unstarted != NULL)
        unstarted->frame.destroy(&unstarted->frame);
}

const cpb_channel_model cpb_channel_awaitable_model = {destroy_stack, false};

/* The function's frame. */
typedef struct body {
    cpb_co_joiner joiner; /* first */
    cpb_channel_bench *bench;
    cpb_co_frame *child; /* the operation that it awaits */
    uint64_t left;
} body;

static void
destroy_body(cpb_frame *frame)
{
    body *self = (body *)(void *)frame;
    cpb_co_group_abandon(&self->joiner);
    cpb_co_free(self, sizeof *self);
}

/* Makes a coroutine and its entry. False when there is no memory. */
CPB_NOINLINE static bool
make(cpb_channel_bench *bench, uint64_t ops, unsigned index, cpb_frame *(*resume)(cpb_frame *))
{
    body *self = cpb_co_alloc(sizeof *self);
    entry *bottom = cpb_co_alloc(sizeof *bottom);
    if (self == NULL || bottom == NULL) {
        if (self != NULL)
            cpb_co_free(self, sizeof *self);
        if (bottom != NULL)
            cpb_co_free(bottom, sizeof *bottom);
        return false;
    }
    *self = (body){.bench = bench, .left = ops, .joiner = {.channel = &bench->channels[0]}};
    cpb_co_frame_init(&self->joiner.base, resume, destroy_body);
    cpb_co_entry_init(&bottom->base, resume_entry, destroy_entry, &bench->executor);
    bottom->bench = bench;
    bottom->index = index;
    bottom->main = &self->joiner.base;
    bench->roots[index] = bottom;
    return true;
}

static void
launch(cpb_channel_bench *bench, unsigned index)
{
    cpb_co_launch(&((entry *)bench->roots[index])->base);
}

static bool
start(cpb_channel_bench *bench, uint64_t ops, cpb_frame *(*resume)(cpb_frame *))
{
    if (!make(bench, ops, 0, resume))
        return false;
    launch(bench, 0);
    return true;
}

/* Without memory for a child the thread is taken out, so that the pump ends and the stack stands still. */
CPB_NOINLINE static cpb_frame *
stand_still(body *self)
{
    cpb_any_fail(&self->bench->executor, CPB_E_NO_MEMORY);
    cpb_co_detach(&self->joiner.base);
    return NULL;
}

static inline cpb_frame *
await_child(body *self, cpb_co_frame *child, uint64_t state)
{
    self->child = child;
    if (CPB_UNLIKELY(child == NULL))
        return stand_still(self);
    self->joiner.base.frame.state = state;
    cpb_co_push(child, &self->joiner.base);
    return NULL;
}

static inline cpb_frame *
finish(body *self)
{
    cpb_co_return_void(&self->joiner.base);
    return NULL;
}

CPB_NOINLINE static cpb_frame *
resume_post(cpb_frame *frame)
{
    body *self = (body *)(void *)frame;
    if (frame->state == 1) {
        self->bench->failures += !cpb_co_take_void(self->child);
        self->bench->done++;
        self->left--;
    }
    if (self->left == 0)
        return finish(self);
    return await_child(self, cpb_co_post(), 1);
}

bool
cpb_channel_awaitable_post(cpb_channel_bench *bench, uint64_t ops)
{
    return start(bench, ops, resume_post);
}

CPB_NOINLINE static cpb_frame *
resume_immediate(cpb_frame *frame)
{
    body *self = (body *)(void *)frame;
    cpb_channel_bench *bench = self->bench;
    cpb_payload payload;
    if (frame->state == 1) {
        bench->failures += !cpb_co_take(self->child, &payload);
        bench->sent += self->left;
        return await_child(self, cpb_co_receive(&bench->channels[0]), 2);
    }
    if (frame->state == 2) {
        bench->failures += !cpb_co_take(self->child, &payload);
        bench->received += payload.value;
        bench->done++;
        self->left--;
    }
    if (self->left == 0)
        return finish(self);
    return await_child(self, cpb_co_send(&bench->channels[0], self->left), 1);
}

bool
cpb_channel_awaitable_immediate(cpb_channel_bench *bench, uint64_t ops)
{
    return start(bench, ops, resume_immediate);
}

/* What both groups do when both operations have completed. */
static inline void
take_group(body *self)
{
    self->bench->failures += !cpb_co_group_take(&self->joiner);
    self->bench->sent += self->left;
    self->bench->received += self->joiner.results[1].value.value;
    self->bench->done++;
    self->left--;
}

CPB_NOINLINE static cpb_frame *
resume_channel(cpb_frame *frame)
{
    body *self = (body *)(void *)frame;
    if (frame->state == 1)
        take_group(self);
    if (self->left == 0)
        return finish(self);
    self->joiner.value = self->left;
    frame->state = 1;
    cpb_co_after_suspend(&self->joiner.base, cpb_co_group_deferred);
    return NULL;
}

bool
cpb_channel_awaitable_channel(cpb_channel_bench *bench, uint64_t ops)
{
    return start(bench, ops, resume_channel);
}

CPB_NOINLINE static cpb_frame *
resume_parallel(cpb_frame *frame)
{
    body *self = (body *)(void *)frame;
    if (frame->state == 1)
        take_group(self);
    if (self->left == 0)
        return finish(self);
    self->joiner.children[0] = cpb_co_send(self->joiner.channel, self->left);
    self->joiner.children[1] = cpb_co_receive(self->joiner.channel);
    if (CPB_UNLIKELY(self->joiner.children[0] == NULL || self->joiner.children[1] == NULL))
        return stand_still(self);
    frame->state = 1;
    cpb_co_after_suspend(&self->joiner.base, cpb_co_group_spawned);
    return NULL;
}

bool
cpb_channel_awaitable_parallel(cpb_channel_bench *bench, uint64_t ops)
{
    return start(bench, ops, resume_parallel);
}

CPB_NOINLINE static cpb_frame *
resume_server(cpb_frame *frame)
{
    body *self = (body *)(void *)frame;
    cpb_channel_bench *bench = self->bench;
    cpb_payload payload;
    if (frame->state == 1) {
        bench->failures += !cpb_co_take(self->child, &payload);
        bench->sent += self->left;
        return await_child(self, cpb_co_receive(&bench->channels[1]), 2);
    }
    if (frame->state == 2) {
        bench->failures += !cpb_co_take(self->child, &payload);
        bench->done++;
        self->left--;
    }
    if (self->left == 0)
        return finish(self);
    return await_child(self, cpb_co_send(&bench->channels[0], self->left), 1);
}

CPB_NOINLINE static cpb_frame *
resume_returner(cpb_frame *frame)
{
    body *self = (body *)(void *)frame;
    cpb_channel_bench *bench = self->bench;
    cpb_payload payload;
    if (frame->state == 1) {
        bench->failures += !cpb_co_take(self->child, &payload);
        bench->received += payload.value;
        return await_child(self, cpb_co_send(&bench->channels[1], payload.value), 2);
    }
    if (frame->state == 2) {
        bench->failures += !cpb_co_take(self->child, &payload);
        self->left--;
    }
    if (self->left == 0)
        return finish(self);
    return await_child(self, cpb_co_receive(&bench->channels[0]), 1);
}

bool
cpb_channel_awaitable_pingpong(cpb_channel_bench *bench, uint64_t ops)
{
    if (!make(bench, ops, 1, resume_returner) || !make(bench, ops, 0, resume_server))
        return false;
    launch(bench, 1);
    launch(bench, 0);
    return true;
}
