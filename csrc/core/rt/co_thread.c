#include "rt/co_thread.h"

/* The frame may be gone when its resume function returns; the context is ours. */
static inline void
resume(cpb_co_frame *self)
{
    cpb_co_context context = {NULL, NULL};
    self->context = &context;
    CPB_INDIRECT(self->frame.resume)(&self->frame);
    if (context.after != NULL)
        CPB_INDIRECT(context.after)(context.frame);
}

CPB_NOINLINE void
cpb_co_pump(cpb_co_thread *thread)
{
    do {
        resume(thread->bottom->top);
    } while (thread->bottom != NULL && thread->bottom->top != NULL);
    if (thread->bottom != NULL)
        CPB_INDIRECT(thread->bottom->base.frame.destroy)(&thread->bottom->base.frame);
}

void
cpb_co_launch(cpb_co_entry *entry)
{
    cpb_co_thread thread = {entry};
    entry->top->thread = &thread;
    cpb_co_pump(&thread);
}

void
cpb_co_destroy(cpb_co_entry *entry)
{
    cpb_co_frame *frame = entry != NULL ? entry->top : NULL;
    while (frame != NULL) {
        cpb_co_frame *caller = frame->caller;
        frame->frame.destroy(&frame->frame);
        frame = caller;
    }
}

/* Completes the operation that the top frame stands for: the frame returns the value without being resumed. A NULL
 * payload is the result of an operation that has none. */
static inline void
complete_thread(cpb_co_thread thread, const cpb_payload *payload)
{
    cpb_co_frame *top = thread.bottom->top;
    top->thread = &thread;
    if (payload != NULL)
        cpb_co_return(top, *payload);
    else
        cpb_co_return_void(top);
    cpb_cancel_clear(thread.bottom->slot);
    cpb_co_pump(&thread);
}

/* A handler without a payload on its way through the scheduler. */
typedef struct posted_void {
    cpb_operation operation;
    cpb_co_thread thread;
} posted_void;

static void
complete_posted_void(void *owner, cpb_operation *operation)
{
    posted_void *self = (posted_void *)(void *)operation;
    cpb_co_thread thread = self->thread;
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, self, sizeof *self);
    if (CPB_LIKELY(owner != NULL))
        complete_thread(thread, NULL);
}

static inline void
post_void(cpb_co_thread thread)
{
    cpb_any_executor executor = thread.bottom->executor;
    posted_void *self = cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, sizeof *self);
    if (CPB_UNLIKELY(self == NULL)) {
        cpb_any_fail(&executor, CPB_E_NO_MEMORY);
        return;
    }
    self->operation.complete = complete_posted_void;
    self->thread = thread;
    cpb_any_post(&executor, &self->operation);
}

typedef struct posted_thread {
    cpb_operation operation;
    cpb_co_thread thread;
    cpb_payload payload;
} posted_thread;

static void
complete_posted_thread(void *owner, cpb_operation *operation)
{
    posted_thread *self = (posted_thread *)(void *)operation;
    cpb_co_thread thread = self->thread;
    cpb_payload payload = self->payload;
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, self, sizeof *self);
    if (CPB_LIKELY(owner != NULL))
        complete_thread(thread, &payload);
}

static inline void
post_thread(const cpb_any_executor *on, cpb_co_thread thread, cpb_payload payload)
{
    cpb_any_executor executor = *on;
    posted_thread *self = cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, sizeof *self);
    if (CPB_UNLIKELY(self == NULL)) {
        cpb_any_fail(&executor, CPB_E_NO_MEMORY);
        return;
    }
    self->operation.complete = complete_posted_thread;
    self->thread = thread;
    self->payload = payload;
    cpb_any_post(&executor, &self->operation);
}

static void
after_post(cpb_co_frame *frame)
{
    post_void(cpb_co_detach(frame));
}

CPB_NOINLINE static cpb_frame *
resume_post(cpb_frame *frame)
{
    cpb_co_after_suspend((cpb_co_frame *)(void *)frame, after_post);
    return NULL;
}

CPB_NOINLINE static void
destroy_post(cpb_frame *frame)
{
    cpb_co_free(frame, sizeof(cpb_co_frame));
}

CPB_NOINLINE cpb_co_frame *
cpb_co_post(void)
{
    cpb_co_frame *self = cpb_co_alloc(sizeof *self);
    if (CPB_LIKELY(self != NULL))
        cpb_co_frame_init(self, resume_post, destroy_post);
    return self;
}

static void
after_dispatch(cpb_co_frame *frame)
{
    cpb_co_thread thread = cpb_co_detach(frame);
    if (CPB_LIKELY(cpb_any_running_here(&thread.bottom->executor)))
        complete_thread(thread, NULL);
    else
        post_void(thread);
}

CPB_NOINLINE static cpb_frame *
resume_dispatch(cpb_frame *frame)
{
    cpb_co_after_suspend((cpb_co_frame *)(void *)frame, after_dispatch);
    return NULL;
}

CPB_NOINLINE cpb_co_frame *
cpb_co_dispatch(void)
{
    cpb_co_frame *self = cpb_co_alloc(sizeof *self);
    if (CPB_LIKELY(self != NULL))
        cpb_co_frame_init(self, resume_dispatch, destroy_post);
    return self;
}

/* A channel operation whose handler is an awaitable thread. Completing immediately means a post, too: no immediate
 * executor is associated. */
typedef struct thread_op {
    cpb_channel_op base;
    cpb_any_executor work;
    cpb_co_thread thread;
} thread_op;

static void
act_on_thread(cpb_channel_op *base, cpb_channel_action action, cpb_payload payload)
{
    thread_op *self = (thread_op *)(void *)base;
    cpb_any_executor work = self->work;
    cpb_co_thread thread = self->thread;
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, self, sizeof *self);
    if (CPB_LIKELY(action != CPB_CHANNEL_DESTROY))
        post_thread(&work, thread, payload);
    cpb_any_work_finished(&work);
}

typedef struct channel_frame {
    cpb_co_frame base;
    cpb_channel *channel;
    uint64_t value;
} channel_frame;

static inline cpb_channel_op *
make_thread_op(cpb_co_frame *frame, uint64_t value)
{
    cpb_co_thread thread = cpb_co_detach(frame);
    thread_op *self = cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, sizeof *self);
    if (CPB_UNLIKELY(self == NULL) ||
        CPB_UNLIKELY(thread.bottom->slot.handler != NULL && !cpb_cancel_emplace(thread.bottom->slot, self, NULL))) {
        if (self != NULL)
            cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, self, sizeof *self);
        cpb_any_fail(&thread.bottom->executor, CPB_E_NO_MEMORY);
        return NULL;
    }
    self->base.act = act_on_thread;
    self->base.payload = (cpb_payload){0, NULL, value};
    self->work = thread.bottom->executor;
    self->thread = thread;
    cpb_any_work_started(&self->work);
    return &self->base;
}

static void
after_send(cpb_co_frame *frame)
{
    channel_frame *self = (channel_frame *)(void *)frame;
    cpb_channel *channel = self->channel;
    cpb_channel_op *op = make_thread_op(frame, self->value);
    if (CPB_LIKELY(op != NULL))
        cpb_channel_send(channel, op);
}

static void
after_receive(cpb_co_frame *frame)
{
    cpb_channel *channel = ((channel_frame *)(void *)frame)->channel;
    cpb_channel_op *op = make_thread_op(frame, 0);
    if (CPB_LIKELY(op != NULL))
        cpb_channel_receive(channel, op);
}

CPB_NOINLINE static cpb_frame *
resume_send(cpb_frame *frame)
{
    cpb_co_after_suspend((cpb_co_frame *)(void *)frame, after_send);
    return NULL;
}

CPB_NOINLINE static cpb_frame *
resume_receive(cpb_frame *frame)
{
    cpb_co_after_suspend((cpb_co_frame *)(void *)frame, after_receive);
    return NULL;
}

CPB_NOINLINE static void
destroy_channel_frame(cpb_frame *frame)
{
    cpb_co_free(frame, sizeof(channel_frame));
}

static inline cpb_co_frame *
make_channel_frame(cpb_channel *channel, uint64_t value, cpb_frame *(*resume_function)(cpb_frame *))
{
    channel_frame *self = cpb_co_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_co_frame_init(&self->base, resume_function, destroy_channel_frame);
    self->channel = channel;
    self->value = value;
    return &self->base;
}

CPB_NOINLINE cpb_co_frame *
cpb_co_send(cpb_channel *channel, uint64_t value)
{
    return make_channel_frame(channel, value, resume_send);
}

CPB_NOINLINE cpb_co_frame *
cpb_co_receive(cpb_channel *channel)
{
    return make_channel_frame(channel, 0, resume_receive);
}
