/* Suite `io_context` (network specification 2.7): handlers posted to a context and run. items/s: one item is a handler,
 * the increment of a counter. A handler's memory comes from the recycling resource for each post, callback or coroutine
 * alike. */
#include <sched.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "suites/net_suite.h"

#define FEEDER_BOUND 200000u /* handlers that may wait */
#define WORKER_SHARE 10000u

typedef struct context_state {
    net_base base; /* first */
    bool shared;   /* several threads: the counter is atomic */
    unsigned batch;
    uint64_t count; /* single-threaded */
    _Atomic(uint64_t) shared_count;
    _Atomic(uint64_t) to_post;
    uint64_t expected;
} context_state;

static inline void
increment(context_state *state)
{
    if (state->shared)
        cpb_atomic_add_relaxed(&state->shared_count, 1);
    else
        state->count++;
}

static uint64_t
handled(context_state *state)
{
    return state->shared ? cpb_atomic_load_relaxed(&state->shared_count) : state->count;
}

typedef struct handler {
    cpb_op op; /* first */
    context_state *state;
} handler;

static void
on_handler(cpb_op *op)
{
    context_state *state = ((handler *)(void *)op)->state;
    cpb_resource_deallocate(state->base.env.allocator, op, sizeof(handler), CPB_DEFAULT_ALIGN);
    increment(state);
}

static void
post_callback(context_state *state)
{
    handler *self = cpb_resource_allocate(state->base.env.allocator, sizeof *self, CPB_DEFAULT_ALIGN);
    if (CPB_UNLIKELY(self == NULL)) {
        atomic_store(&state->base.status, CPB_E_NO_MEMORY);
        return;
    }
    self->op.complete = on_handler;
    self->op.actor = NULL;
    self->state = state;
    cpb_reactor_post(state->base.reactor, &self->op);
}

typedef struct trivial {
    cpb_task base;
    cpb_op op;
    context_state *state;
} trivial;

CPB_NOINLINE static void
destroy_trivial(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(trivial));
}

CPB_NOINLINE static cpb_frame *
resume_trivial(cpb_frame *frame)
{
    trivial *self = (trivial *)(void *)frame;
    context_state *state = self->state;
    cpb_env_restore_allocator(self->base.env);
    increment(state);
    destroy_trivial(frame);
    return NULL;
}

static void
resume_op(cpb_op *op)
{
    cpb_frame_drive(&CPB_CONTAINER_OF(op, trivial, op)->base.frame);
}

static void
post_task(context_state *state)
{
    cpb_task *task = net_task(&state->base, sizeof(trivial), resume_trivial, destroy_trivial);
    if (task == NULL)
        return;
    trivial *self = (trivial *)(void *)task;
    self->op.complete = resume_op;
    self->op.actor = NULL;
    self->state = state;
    cpb_reactor_post(state->base.reactor, &self->op);
}

static void
post_many(context_state *state, uint64_t count)
{
    if (state->base.contender->style == NET_TASK) {
        for (uint64_t i = 0; i < count; i++)
            post_task(state);
    } else {
        for (uint64_t i = 0; i < count; i++)
            post_callback(state);
    }
}

/* Batches: post, poll, restart. */
static int
run_batches(cpb_run *run, uint64_t ops)
{
    context_state *state = run->state;
    for (uint64_t i = 0; i < ops; i += state->batch) {
        post_many(state, state->batch);
        cpb_reactor_poll(state->base.reactor);
        cpb_reactor_restart(state->base.reactor);
    }
    state->expected += ops;
    return net_run(&state->base);
}

/* Runs on each of the threads: a feeder that keeps the others busy and no more, and runners. */
static void
feed(net_base *base)
{
    context_state *state = (context_state *)(void *)base;
    uint64_t left = atomic_exchange(&state->to_post, 0), posted = handled(state);
    while (left > 0) {
        uint64_t waiting = posted - handled(state);
        if (waiting >= FEEDER_BOUND) {
            sched_yield();
            continue;
        }
        uint64_t room = FEEDER_BOUND - waiting, count = left < room ? left : room;
        count = count < 1000 ? count : 1000;
        post_many(state, count);
        posted += count;
        left -= count;
    }
}

static int
run_fed(cpb_run *run, uint64_t ops)
{
    context_state *state = run->state;
    atomic_store(&state->to_post, ops);
    state->expected += ops;
    return net_run_with(&state->base, feed, NULL);
}

/* Each worker posts its share, then polls, until all are posted. */
static void
post_and_poll(net_base *base)
{
    context_state *state = (context_state *)(void *)base;
    for (;;) {
        uint64_t left = atomic_load(&state->to_post), share;
        do
            share = left < WORKER_SHARE ? left : WORKER_SHARE;
        while (!atomic_compare_exchange_weak(&state->to_post, &left, left - share));
        if (share == 0)
            return;
        post_many(state, share);
        cpb_reactor_poll(base->reactor);
    }
}

static int
run_workers(cpb_run *run, uint64_t ops)
{
    context_state *state = run->state;
    atomic_store(&state->to_post, ops);
    state->expected += ops;
    return net_run_with(&state->base, post_and_poll, post_and_poll);
}

static void
teardown(cpb_run *run)
{
    context_state *state = run->state;
    net_close(&state->base);
    run->host->release(state);
}

static int
setup(cpb_run *run)
{
    context_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    run->state = state;
    unsigned threads = net_argument(run->cell, 1);
    bool fed = net_is(run->cell, "multithreaded");
    state->batch = net_is(run->cell, "interleaved") ? 100 : 1000;
    state->shared = threads > 1;
    /* The feeder is a thread of its own; it helps to run when it has posted all. */
    int status = net_open(&state->base, run, net_is_lockless(run->cell), threads + fed, 0, false);
    if (status != CPB_OK)
        run->host->release(state);
    return status;
}

static int
verify(cpb_run *run)
{
    context_state *state = run->state;
    uint64_t done = handled(state);
    if (done != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu handlers ran, not %llu", (unsigned long long)done,
                               (unsigned long long)state->expected);
    return CPB_OK;
}

static const char *
not_ours(void)
{
    return "a setting of Corosio that no model here has; it concerns I/O, and this suite does none";
}

/* A batch is larger than the recycling resource keeps, so that some blocks come from the heap. */
static const cpb_ledger ledger = {{CPB_ANY, 1, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, 1, CPB_ANY}};

#define CELL(case_name, contender_name, text, quick, run_function, step_size, cpu_count, reason)                       \
    {                                                                                                                  \
        .suite = "io_context", .name = case_name, .contender = contender_name, .summary = text, .unit = "items/s",     \
        .direction = CPB_HIGHER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .step = step_size,             \
        .cpus = cpu_count, .ledger = &ledger, .unavailable = reason, .setup = setup, .run = run_function,              \
        .verify = verify, .teardown = teardown                                                                         \
    }
#define CASE(name, quick, run_function, step, cpus)                                                                    \
    CELL(name, "callback-epoll", "callbacks on epoll", quick, run_function, step, cpus, NULL),                         \
        CELL(name, "task-epoll", "coroutines on epoll", quick, run_function, step, cpus, NULL),                        \
        CELL(name, "callback-uring", "callbacks on io_uring", quick, run_function, step, cpus, net_unavailable_uring), \
        CELL(name, "task-uring", "coroutines on io_uring", quick, run_function, step, cpus, net_unavailable_uring),    \
        CELL(name, "callback-poll", "callbacks on poll", quick, run_function, step, cpus, NULL)

static const cpb_case cells[] = {
    CASE("single_threaded", CPB_QUICK, run_batches, 1000, 1),
    CASE("single_threaded_lockless", 0, run_batches, 1000, 1),
    CASE("interleaved", 0, run_batches, 100, 1),
    CASE("interleaved_lockless", 0, run_batches, 100, 1),
    CASE("multithreaded/8", 0, run_fed, 1000, 8),
    CASE("concurrent/4", 0, run_workers, 1000, 4),
    CELL("high_inline_budget", "callback-epoll", "an inline ceiling of 64", 0, run_batches, 1000, 1, not_ours),
    CELL("large_event_buffer", "callback-epoll", "512 events a poll", 0, run_batches, 1000, 1, not_ours),
};

const cpb_suite cpb_suite_io_context = {
    .name = "io_context",
    .summary = "handlers posted to a context and run (Corosio io_context)",
    .baselines = NET_BASELINES,
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
