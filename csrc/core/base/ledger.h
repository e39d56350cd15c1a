/* ledger.h: exact event counting, compiled in only in the counting build (CPB_LEDGER=1).
 *
 * The measured build carries none of it: every macro here expands to nothing but its operand. Counts are process-wide
 * and relaxed, since counted work may run on several threads. */
#ifndef CPB_BASE_LEDGER_H
#define CPB_BASE_LEDGER_H

#include "capybench.h"

#ifndef CPB_LEDGER
#    define CPB_LEDGER 0
#endif

#if CPB_LEDGER
/* The totals since the process began; indexed by cpb_counter. */
extern uint64_t cpb_ledger_totals[CPB_COUNTER_COUNT];
#    define CPB_COUNT_N(counter, events)                                                                               \
        ((void)__atomic_fetch_add(&cpb_ledger_totals[counter], (uint64_t)(events), __ATOMIC_RELAXED))
#else
#    define CPB_COUNT_N(counter, events) ((void)0)
#endif
#define CPB_COUNT(counter) CPB_COUNT_N(counter, 1)

/* Marks a call through a function pointer:  CPB_INDIRECT(frame->resume)(frame). */
#define CPB_INDIRECT(function) (CPB_COUNT(CPB_INDIRECT_CALLS), (function))

/* Copies all totals; zeros in the measured build. */
void cpb_ledger_read(uint64_t totals[CPB_COUNTER_COUNT]);

/* True in the counting build. */
int cpb_ledger_counting(void);

/* The result key of a counter. */
const char *cpb_counter_key(cpb_counter counter);

#endif
