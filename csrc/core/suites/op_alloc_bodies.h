/* op_alloc_bodies.h: the composed operation of suite `op_alloc`, compiled once for each allocator. */
#ifndef CPB_SUITES_OP_ALLOC_BODIES_H
#define CPB_SUITES_OP_ALLOC_BODIES_H

#include "alloc/monotonic.h"
#include "alloc/resource.h"
#include "rt/scheduler.h"

#define CPB_OP_ALLOC_POSTS 5u
#define CPB_OP_ALLOC_LARGE 512u
#define CPB_OP_ALLOC_SMALL 256u
#define CPB_OP_ALLOC_BUFFER 1024u

typedef struct cpb_op_alloc_bench cpb_op_alloc_bench;

/* Posts the first step of an operation, on the scheduler's thread. */
typedef void (*cpb_op_alloc_start)(cpb_op_alloc_bench *bench);

struct cpb_op_alloc_bench {
    cpb_scheduler scheduler;
    cpb_any_executor executor;
    cpb_operation starter;
    cpb_op_alloc_start start;
    cpb_resource *resource;   /* of the contenders behind a table */
    cpb_monotonic *monotonic; /* of Cobalt's monotonic one */
    uint64_t left;
    uint64_t started, completed; /* operations */
    uint64_t arrays_made, arrays_dropped;
    uint64_t posts;
    uint64_t not_zero; /* arrays that were not filled with zeros */
};

void cpb_op_alloc_malloc(cpb_op_alloc_bench *bench);
void cpb_op_alloc_monotonic(cpb_op_alloc_bench *bench);
void cpb_op_alloc_pmr_monotonic(cpb_op_alloc_bench *bench);
void cpb_op_alloc_sbo(cpb_op_alloc_bench *bench);
void cpb_op_alloc_recycling(cpb_op_alloc_bench *bench);
void cpb_op_alloc_mimalloc(cpb_op_alloc_bench *bench);

#endif
