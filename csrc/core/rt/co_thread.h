/* co_thread.h: Asio's awaitables: a stack of coroutine frames that moves as one thing, the awaitable thread.
 *
 * The bottom frame, the entry, knows the top one and the executor. An await of a child pushes its frame and returns to
 * the pump, which resumes whatever is on top; a frame's end pops it. An asynchronous operation takes the thread out of
 * the running frame after that has suspended, keeps it in its handler, and attaches and pumps it on completion. Frames
 * and operations come from the thread's cache. */
#ifndef CPB_RT_CO_THREAD_H
#define CPB_RT_CO_THREAD_H

#include "rt/channel.h"

typedef struct cpb_co_entry cpb_co_entry;
typedef struct cpb_co_frame cpb_co_frame;

typedef struct cpb_co_thread {
    cpb_co_entry *bottom; /* NULL once it was taken out */
} cpb_co_thread;

/* What a frame leaves to be done once it has suspended. Lives on the stack of whoever resumes. */
typedef struct cpb_co_context {
    void (*after)(cpb_co_frame *frame);
    cpb_co_frame *frame;
} cpb_co_context;

struct cpb_co_frame {
    cpb_frame frame; /* first */
    cpb_co_thread *thread;
    cpb_co_frame *caller;
    cpb_co_context *context;
    void *exception;
    cpb_op_result result;
};

struct cpb_co_entry {
    cpb_co_frame base; /* first */
    cpb_co_frame *top;
    cpb_any_executor executor;
    bool context_switched;
    cpb_cancel_slot slot;
};

static inline void
cpb_co_frame_init(cpb_co_frame *self, cpb_frame *(*resume)(cpb_frame *), void (*destroy)(cpb_frame *))
{
    self->frame = (cpb_frame){resume, destroy, 0};
    self->thread = NULL;
    self->caller = NULL;
    self->context = NULL;
    self->exception = NULL;
    self->result.engaged = false;
}

static inline void
cpb_co_entry_init(cpb_co_entry *self, cpb_frame *(*resume)(cpb_frame *), void (*destroy)(cpb_frame *),
                  const cpb_any_executor *executor)
{
    cpb_co_frame_init(&self->base, resume, destroy);
    self->top = &self->base;
    self->executor = *executor;
    self->context_switched = false;
    self->slot.handler = NULL;
}

/* The await of a child: its frame becomes the top. The caller returns from its resume function. */
static inline void
cpb_co_push(cpb_co_frame *child, cpb_co_frame *caller)
{
    child->caller = caller;
    child->thread = caller->thread;
    child->thread->bottom->top = child;
    caller->thread = NULL;
}

static inline void
cpb_co_pop(cpb_co_frame *self)
{
    if (self->caller != NULL)
        self->caller->thread = self->thread;
    self->thread->bottom->top = self->caller;
    self->thread = NULL;
    self->caller = NULL;
}

/* A frame's end, with a value. */
static inline void
cpb_co_return(cpb_co_frame *self, cpb_payload value)
{
    self->result.value = value;
    self->result.engaged = true;
    cpb_co_pop(self);
}

/* A frame's end without a value. */
static inline void
cpb_co_return_void(cpb_co_frame *self)
{
    self->result.value.error = 0;
    self->result.engaged = true;
    cpb_co_pop(self);
}

/* The end of a child's frame that has no value. False when it failed. */
static inline bool
cpb_co_take_void(cpb_co_frame *child)
{
    bool ok = child->exception == NULL && child->result.engaged && child->result.value.error == 0;
    CPB_INDIRECT(child->frame.destroy)(&child->frame);
    return ok;
}

/* The result of a child that ended, and the end of its frame. False when it failed. */
static inline bool
cpb_co_take(cpb_co_frame *child, cpb_payload *value)
{
    bool ok = child->exception == NULL && child->result.engaged && child->result.value.error == 0;
    *value = child->result.value;
    CPB_INDIRECT(child->frame.destroy)(&child->frame);
    return ok;
}

/* Asks for `after` to be called once the running frame has suspended. The caller returns from its resume function. */
static inline void
cpb_co_after_suspend(cpb_co_frame *self, void (*after)(cpb_co_frame *frame))
{
    self->context->after = after;
    self->context->frame = self;
}

/* Takes the thread out of a suspended frame. */
static inline cpb_co_thread
cpb_co_detach(cpb_co_frame *self)
{
    cpb_co_thread *thread = self->thread;
    cpb_co_thread moved = *thread;
    thread->bottom->context_switched = true;
    thread->bottom = NULL;
    return moved;
}

/* Resumes top frames until the thread was taken out or its entry has ended, which frees the entry. The thread is
 * attached to the top frame. */
void cpb_co_pump(cpb_co_thread *thread);

/* Starts an entry on this thread, as far as it goes. */
void cpb_co_launch(cpb_co_entry *entry);

/* Destroys a suspended stack of frames from its top; accepts NULL. */
void cpb_co_destroy(cpb_co_entry *entry);

/* Ramps of the coroutines that `use_awaitable` makes of an operation: post, send, receive. Suspended frames from the
 * cache; NULL when there is no memory. */
cpb_co_frame *cpb_co_post(void);
cpb_co_frame *cpb_co_send(cpb_channel *channel, uint64_t value);
cpb_co_frame *cpb_co_receive(cpb_channel *channel);

/* The same of dispatch, which on a thread that runs the scheduler goes on at once. */
cpb_co_frame *cpb_co_dispatch(void);

static inline void *
cpb_co_alloc(size_t size)
{
    return cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_FRAME, size);
}

static inline void
cpb_co_free(void *frame, size_t size)
{
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_FRAME, frame, size);
}

#endif
