/* gather.h: Cobalt's gather of two branches (specification D.3).
 *
 * Each branch is awaited by a fork, a small coroutine whose frame comes from a 512-byte buffer inside the gather's
 * awaitable, by a monotonic resource that falls back to the thread's frame resource. Forks start at once and pause
 * until all are wired, that is until the parent's executor is known; they share the state by a plain use count, and the
 * last one to end resumes the parent by direct transfer. Every branch has a cancellation signal and a result slot. */
#ifndef CPB_RT_GATHER_H
#define CPB_RT_GATHER_H

#include "alloc/monotonic.h"
#include "rt/op.h"

#define CPB_GATHER_BRANCHES 2u
#define CPB_GATHER_BUFFER 512u

typedef struct cpb_gather cpb_gather;

typedef struct cpb_fork {
    cpb_promise promise; /* first */
    cpb_gather *gather;
    unsigned branch;
    bool done;
} cpb_fork;

/* A fork's ramp: makes the frame of branch `branch` and runs it until it suspends or ends. NULL when there is no
 * memory. */
typedef cpb_fork *(*cpb_fork_ramp)(cpb_gather *gather, unsigned branch);

typedef enum cpb_branch_state { CPB_BRANCH_EMPTY, CPB_BRANCH_VALUE, CPB_BRANCH_EXCEPTION } cpb_branch_state;

typedef struct cpb_branch_result {
    cpb_branch_state state;
    cpb_payload value;
} cpb_branch_result;

struct cpb_gather {
    _Alignas(16) unsigned char buffer[CPB_GATHER_BUFFER]; /* never cleared */
    cpb_pmr_monotonic resource;
    cpb_frame *parent;
    size_t use_count;
    bool wired;
    cpb_any_executor executor;
    void *awaitables[CPB_GATHER_BRANCHES];
    cpb_cancel_signal cancel[CPB_GATHER_BRANCHES];
    cpb_branch_result results[CPB_GATHER_BRANCHES];
    cpb_fork_ramp ramps[CPB_GATHER_BRANCHES];
    cpb_fork *last_forked;
    unsigned started;
};

static inline void
cpb_gather_init(cpb_gather *gather, cpb_fork_ramp first, void *first_awaitable, cpb_fork_ramp second,
                void *second_awaitable)
{
    cpb_pmr_monotonic_init(&gather->resource, gather->buffer, sizeof gather->buffer, cpb_frame_allocator);
    gather->parent = NULL;
    gather->use_count = 0;
    gather->wired = false;
    gather->awaitables[0] = first_awaitable;
    gather->awaitables[1] = second_awaitable;
    gather->ramps[0] = first;
    gather->ramps[1] = second;
    for (unsigned i = 0; i < CPB_GATHER_BRANCHES; i++) {
        gather->cancel[i].handler = NULL;
        gather->results[i].state = CPB_BRANCH_EMPTY;
    }
    gather->last_forked = NULL;
    gather->started = 0;
}

/* The steps of an await; suspend answers false when both branches ended meanwhile. Where memory runs out the executor
 * is told and the parent stays suspended. */
bool cpb_gather_ready(cpb_gather *gather, const cpb_promise *promise);
bool cpb_gather_suspend(cpb_gather *gather, cpb_promise *promise);

/* True when both branches have a value. */
static inline bool
cpb_gather_resume(const cpb_gather *gather)
{
    return gather->results[0].state == CPB_BRANCH_VALUE && gather->results[1].state == CPB_BRANCH_VALUE;
}

/* Ends the awaitable, awaited to its end or not. */
static inline void
cpb_gather_destroy(cpb_gather *gather)
{
    cpb_cancel_clear(cpb_cancel_slot_of(&gather->cancel[0]));
    cpb_cancel_clear(cpb_cancel_slot_of(&gather->cancel[1]));
    if (CPB_UNLIKELY(gather->resource.chunks != NULL))
        cpb_pmr_monotonic_release(&gather->resource);
}

/* A fork's frame, not yet started. NULL when there is no memory. */
cpb_fork *cpb_fork_make(cpb_gather *gather, unsigned branch, cpb_frame *(*resume)(cpb_frame *));

/* A fork's end: answers the parent when this was the last one and the parent waits. */
static inline cpb_frame *
cpb_fork_end(cpb_fork *fork, bool ok, cpb_payload value)
{
    cpb_gather *gather = fork->gather;
    gather->results[fork->branch].state = ok ? CPB_BRANCH_VALUE : CPB_BRANCH_EXCEPTION;
    gather->results[fork->branch].value = value;
    cpb_cancel_clear(fork->promise.slot);
    fork->done = true;
    if (--gather->use_count != 0)
        return NULL;
    cpb_frame *parent = gather->parent;
    gather->parent = NULL;
    return parent;
}

/* Defines the ramp `name` of a fork that awaits an awaitable of `type` by three functions:
 *   bool ready(type *), cpb_frame *suspend(type *, cpb_promise *), bool resume(type *, cpb_payload *). */
#define CPB_DEFINE_FORK(name, type, ready, suspend, take)                                                              \
    CPB_NOINLINE static cpb_frame *name##_resume(cpb_frame *frame)                                                     \
    {                                                                                                                  \
        cpb_fork *self = (cpb_fork *)(void *)frame;                                                                    \
        cpb_gather *gather = self->gather;                                                                             \
        type *awaitable = gather->awaitables[self->branch];                                                            \
        switch (frame->state) {                                                                                        \
        case 0:                                                                                                        \
            if (ready(awaitable))                                                                                      \
                break;                                                                                                 \
            self->promise.slot = cpb_cancel_slot_of(&gather->cancel[self->branch]);                                    \
            frame->state = 1;                                                                                          \
            if (!gather->wired)                                                                                        \
                return NULL;                                                                                           \
            /* fall through */                                                                                         \
        case 1:                                                                                                        \
            frame->state = 2;                                                                                          \
            return suspend(awaitable, &self->promise);                                                                 \
        default:                                                                                                       \
            break;                                                                                                     \
        }                                                                                                              \
        cpb_payload value = {0, NULL, 0};                                                                              \
        bool ok = take(awaitable, &value);                                                                             \
        return cpb_fork_end(self, ok, value);                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    CPB_NOINLINE static cpb_fork *name(cpb_gather *gather, unsigned branch)                                            \
    {                                                                                                                  \
        cpb_fork *self = cpb_fork_make(gather, branch, name##_resume);                                                 \
        if (CPB_LIKELY(self != NULL))                                                                                  \
            cpb_frame_drive(name##_resume(&self->promise.frame));                                                      \
        return self;                                                                                                   \
    }

#endif
