/* counting.h: the allocation counter that the read-stream workload itself contains (specification C.1), in both builds:
 * one relaxed atomic increment per allocation, inside the timed region. Global operator new counts and goes to malloc;
 * the counting resource adds to the same counter and forwards to the recycling resource. */
#ifndef CPB_ALLOC_COUNTING_H
#define CPB_ALLOC_COUNTING_H

#include <stdatomic.h>

#include "alloc/resource.h"

extern _Atomic(uint64_t) cpb_counting_allocations;

/* Counted operator new and delete. NULL when there is no memory. */
void *cpb_counting_new(size_t size);
void cpb_counting_delete(void *memory);

cpb_resource *cpb_counting_resource(void);

#endif
