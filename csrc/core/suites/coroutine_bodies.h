/* coroutine_bodies.h: the coroutines of suite `coroutine`. They stand in a translation unit of their own, so that no
 * compiler sees ramp, body and caller together and folds a chain to its constant. */
#ifndef CPB_SUITES_COROUTINE_BODIES_H
#define CPB_SUITES_COROUTINE_BODIES_H

#include "rt/task.h"

/* What the innermost body returns. */
#define CPB_COROUTINE_VALUE 42

/* Ramps of a chain of 1 to 4 tasks: each level awaits the next and returns what it got. NULL when there is no memory.
 */
cpb_task *cpb_coroutine_chain1(void);
cpb_task *cpb_coroutine_chain2(void);
cpb_task *cpb_coroutine_chain3(void);
cpb_task *cpb_coroutine_chain4(void);

/* Ramp of the switching chain: c1 awaits c2; c2 awaits c3 on `target`; c3 awaits a foreign awaitable, then c4. */
cpb_task *cpb_coroutine_switching(cpb_executor target);

/* The foreign awaitable, which knows nothing of environments: always ready. Defined beside the suite, not beside the
 * bodies. */
bool cpb_foreign_ready(void);
void cpb_foreign_resume(void);

/* The same control flow with plain function pointers and no frames: a floor. start(chain, level) calls the next level
 * through a pointer, the innermost calls its completion with the value, each completion calls the one above. */
typedef struct cpb_callback_chain cpb_callback_chain;
typedef void (*cpb_callback)(cpb_callback_chain *chain, int value);
typedef void (*cpb_callback_start)(cpb_callback_chain *chain, cpb_callback done);

struct cpb_callback_chain {
    cpb_callback_start starts[5]; /* starts[d]: begins a chain of d levels, as 1 to 4 */
    cpb_callback done[5];         /* where each level reports */
    int last;
    uint64_t sum;
};

/* Fills in starts[1 .. 4]. */
void cpb_callback_chain_init(cpb_callback_chain *chain);

#endif
