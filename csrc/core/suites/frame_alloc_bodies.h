/* frame_alloc_bodies.h: the four levels of coroutines of suite `frame_alloc` (specification B.1): a root loop awaits
 * level1 once a pass, level1 awaits level2 five times, level2 awaits level3 three times, level3 awaits level4 three
 * times, and level4 increments a counter: 1 + 5 + 15 + 45 = 66 frames a pass. */
#ifndef CPB_SUITES_FRAME_ALLOC_BODIES_H
#define CPB_SUITES_FRAME_ALLOC_BODIES_H

#include <stdatomic.h>

#include "rt/task.h"

#define CPB_FRAMES_PER_PASS 66u
#define CPB_LEAVES_PER_PASS 45u

/* The workload's global counter, incremented once by every leaf. */
extern _Atomic(uint64_t) cpb_frame_alloc_counter;

/* Ramps of the root loop over `passes` passes: frames from the current allocator, or each embedded in its caller's. */
cpb_task *cpb_frame_alloc_root(uint64_t passes);
cpb_task *cpb_frame_alloc_root_embedded(uint64_t passes);

/* The resume function of a level that awaits `count` children, one after another. `type` is a struct with members base
 * (cpb_task), child (cpb_task *) and done (uint64_t). make_child(self) and drop_child(self) make and free the child;
 * the counters of the levels stay apart, as in the original. */
#define CPB_DEFINE_LOOP_RESUME(function, type, count, make_child, drop_child)                                          \
    CPB_NOINLINE static cpb_frame *function(cpb_frame *frame)                                                          \
    {                                                                                                                  \
        type *self = (type *)(void *)frame;                                                                            \
        cpb_env_restore_allocator(self->base.env);                                                                     \
        if (self->base.frame.state == 1) {                                                                             \
            bool failed = self->child->exception != NULL;                                                              \
            drop_child(self);                                                                                          \
            if (CPB_UNLIKELY(failed))                                                                                  \
                return cpb_task_fail(&self->base);                                                                     \
            self->done++;                                                                                              \
        }                                                                                                              \
        if (self->done == (count))                                                                                     \
            return cpb_task_return(&self->base, 0);                                                                    \
        self->child = make_child(self);                                                                                \
        if (CPB_UNLIKELY(self->child == NULL))                                                                         \
            return cpb_task_fail(&self->base);                                                                         \
        self->base.frame.state = 1;                                                                                    \
        return cpb_task_await(&self->base, self->child);                                                               \
    }

#endif
