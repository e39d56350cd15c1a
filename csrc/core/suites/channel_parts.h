/* channel_parts.h: what the contenders of suite `channel` share. The bodies stand in files of their own, so that no
 * compiler sees scheduler, channel and coroutine together. */
#ifndef CPB_SUITES_CHANNEL_PARTS_H
#define CPB_SUITES_CHANNEL_PARTS_H

#include "alloc/size_pool.h"
#include "rt/channel.h"
#include "rt/direct_channel.h"

typedef struct cpb_channel_bench cpb_channel_bench;

/* Makes the coroutines for `ops` ops, stores them in `roots` and runs them as far as they go. Called on the scheduler's
 * thread, inside its run. False when there is no memory. */
typedef bool (*cpb_channel_start)(cpb_channel_bench *bench, uint64_t ops);

typedef struct cpb_channel_model {
    /* Destroys a suspended coroutine of `roots`. */
    void (*destroy)(void *root);
    /* Task frames hold the memory of operations, so what is queued goes first; elsewhere the coroutines go first. */
    bool roots_last;
} cpb_channel_model;

#define CPB_CHANNEL_ROOTS 2u

struct cpb_channel_bench {
    cpb_scheduler scheduler;
    cpb_any_executor executor;
    cpb_size_pool pool;             /* of task frames */
    cpb_channel channels[2];        /* generic */
    cpb_direct_channel direct[2];   /* Cobalt's own */
    void *roots[CPB_CHANNEL_ROOTS]; /* coroutines that have not ended */
    uint64_t done;                  /* ops that reached their end */
    uint64_t sent, received;        /* sums of the values */
    uint64_t failures;              /* operations that completed with an error */
    const cpb_channel_model *model;
    cpb_channel_start start;
    uint64_t ops_to_start;
    uint64_t ops;
    cpb_operation starter;
};

extern const cpb_channel_model cpb_channel_task_model;
bool cpb_channel_task_post(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_task_parallel(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_task_immediate(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_task_channel(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_task_pingpong(cpb_channel_bench *bench, uint64_t ops);

extern const cpb_channel_model cpb_channel_awaitable_model;
bool cpb_channel_awaitable_post(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_awaitable_parallel(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_awaitable_immediate(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_awaitable_channel(cpb_channel_bench *bench, uint64_t ops);
bool cpb_channel_awaitable_pingpong(cpb_channel_bench *bench, uint64_t ops);

#endif
