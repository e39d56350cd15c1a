/* pace.h: the pace probe (method 1.2). A virtual CPU runs in speed states that last seconds; a fixed piece of
 * arithmetic, timed on a sample's own CPU right before and after it, tells in which one the sample was taken. */
#ifndef CPB_BASE_PACE_H
#define CPB_BASE_PACE_H

#include <stdint.h>

/* Runs the probe: independent chains of additions and exclusive ors that touch no memory, limited by throughput.
 * Answers the ns that it took, 1 to 3 ms on today's machines; always the same work. */
uint64_t cpb_pace_ns(void);

#endif
