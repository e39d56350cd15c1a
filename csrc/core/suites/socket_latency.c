/* Suites `socket_latency` and `local_socket_latency` (network specification 2.4, 2.6): ping-pong over one pair or
 * several. One op is a round trip of a pair, four composed steps made by one sequential actor that owns both ends; the
 * metric is the mean of the ops' own times. */
#include "suites/socket_latency.h"

#include <stdlib.h>
#include <string.h>

#define CONCURRENT_MESSAGE 64u

static int
perform(latency_state *state, uint64_t ops)
{
    net_base *base = &state->base;
    state->left = ops;
    for (unsigned i = 0; i < base->pair_count; i++)
        state->actors[i].ops = 0;
    if (base->contender->style == NET_RAW) {
        int status = latency_perform_raw(state);
        return status == CPB_OK ? CPB_OK : base->run->host->fail(base->run, status, "the raw loop ended with an error");
    }
    for (unsigned i = 0; i < base->pair_count; i++) {
        if (base->contender->style == NET_TASK)
            latency_start_task(&state->actors[i]);
        else
            latency_start_callback(&state->actors[i]);
    }
    return net_run(base);
}

/* Before anything is timed: round trips with bytes that only this pair has, compared at both ends. */
static int
prove_contents(cpb_run *run, latency_state *state)
{
    unsigned pairs = state->base.pair_count;
    for (unsigned i = 0; i < pairs; i++) {
        for (size_t j = 0; j < state->message; j++)
            state->actors[i].out[j] = (unsigned char)(1 + (i * 31 + j * 7) % 255);
    }
    int status = perform(state, (uint64_t)pairs * (2 + CPB_INLINE_BUDGET));
    if (status != CPB_OK)
        return status;
    for (unsigned i = 0; i < pairs; i++) {
        const latency_actor *actor = &state->actors[i];
        if (actor->ops == 0 || memcmp(actor->out, actor->in, state->message) != 0 ||
            memcmp(actor->out, actor->back, state->message) != 0)
            return run->host->fail(run, CPB_E_FAILED, "other bytes arrived than were sent");
        memset(state->actors[i].out, 'P', state->message);
    }
    memset(&state->latency, 0, sizeof state->latency);
    return CPB_OK;
}

static int
make_actors(latency_state *state)
{
    unsigned pairs = state->base.pair_count;
    state->actors = calloc(pairs, sizeof *state->actors);
    state->buffers = calloc(3 * (size_t)pairs, state->message);
    if (state->actors == NULL || state->buffers == NULL)
        return state->base.run->host->fail(state->base.run, CPB_E_NO_MEMORY, "no memory for the actors");
    for (unsigned i = 0; i < pairs; i++) {
        latency_actor *actor = &state->actors[i];
        actor->state = state;
        actor->pair = &state->base.pairs[i];
        actor->op.actor = &actor->actor;
        actor->out = state->buffers + (size_t)i * 3 * state->message;
        actor->in = actor->out + state->message;
        actor->back = actor->in + state->message;
    }
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    latency_state *state = run->state;
    net_raw_close(&state->kernel);
    net_close(&state->base);
    free(state->buffers);
    free(state->actors);
    run->host->release(state);
}

static int
setup(cpb_run *run)
{
    latency_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    run->state = state;
    bool concurrent = net_is(run->cell, "concurrent");
    unsigned argument = net_argument(run->cell, 1);
    state->message = concurrent ? CONCURRENT_MESSAGE : argument;
    int status = net_open(&state->base, run, net_is_lockless(run->cell), 1, concurrent ? argument : 1,
                          run->cell->suite[0] == 'l');
    if (status != CPB_OK) {
        run->host->release(state);
        return status;
    }
    status = make_actors(state);
    if (status == CPB_OK && state->base.contender->style == NET_RAW)
        status = latency_prepare_raw(state);
    if (status == CPB_OK)
        status = prove_contents(run, state);
    if (status != CPB_OK)
        teardown(run);
    return status;
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    latency_state *state = run->state;
    uint64_t before = state->latency.sum;
    int status = perform(state, ops);
    if (status != CPB_OK)
        return status;
    state->expected += ops;
    run->reported_ns = state->latency.sum - before;
    uint64_t least = UINT64_MAX, most = 0;
    for (unsigned i = 0; i < state->base.pair_count; i++) {
        least = state->actors[i].ops < least ? state->actors[i].ops : least;
        most = state->actors[i].ops > most ? state->actors[i].ops : most;
    }
    if (most - least > 1 + CPB_INLINE_BUDGET)
        return run->host->fail(run, CPB_E_FAILED, "actors' progress differs by %llu ops: one ran ahead",
                               (unsigned long long)(most - least));
    return CPB_OK;
}

static int
verify(cpb_run *run)
{
    const latency_state *state = run->state;
    if (state->failed != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu steps moved another number of bytes than the message has",
                               (unsigned long long)state->failed);
    if (state->latency.count != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu round trips completed",
                               (unsigned long long)state->latency.count, (unsigned long long)state->expected);
    return CPB_OK;
}

/* X(case, quick) */
#define LOCKED_CASES(X)                                                                                                \
    X("pingpong/1", 0)                                                                                                 \
    X("pingpong/64", CPB_QUICK)                                                                                        \
    X("pingpong/1024", 0)                                                                                              \
    X("concurrent/1", 0)                                                                                               \
    X("concurrent/4", 0)                                                                                               \
    X("concurrent/16", CPB_QUICK)
#define LOCKLESS_CASES(X)                                                                                              \
    X("pingpong_lockless/1", 0)                                                                                        \
    X("pingpong_lockless/64", CPB_QUICK)                                                                               \
    X("pingpong_lockless/1024", 0)                                                                                     \
    X("concurrent_lockless/1", 0)                                                                                      \
    X("concurrent_lockless/4", 0)                                                                                      \
    X("concurrent_lockless/16", 0)

#define CELL(suite_name, case_name, contender_name, text, quick, reason)                                               \
    {                                                                                                                  \
        .suite = suite_name, .name = case_name, .contender = contender_name, .summary = text, .unit = "ns/op",         \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .ledger = &ledger,              \
        .unavailable = reason, .setup = setup, .run = run_ops, .verify = verify, .teardown = teardown                  \
    }
#define RUNTIME_CELLS(suite, name, quick)                                                                              \
    CELL(suite, name, "callback-epoll", "callbacks on epoll", quick, NULL),                                            \
        CELL(suite, name, "task-epoll", "a coroutine on epoll", quick, NULL),                                          \
        CELL(suite, name, "callback-uring", "callbacks on io_uring", quick, net_unavailable_uring),                    \
        CELL(suite, name, "task-uring", "a coroutine on io_uring", quick, net_unavailable_uring),                      \
        CELL(suite, name, "callback-poll", "callbacks on poll", quick, NULL),
#define RAW_CELLS(suite, name, quick)                                                                                  \
    CELL(suite, name, "raw-epoll", "the same system calls without a runtime", quick, NULL),                            \
        CELL(suite, name, "raw-uring", "the same submissions without a runtime", quick, net_unavailable_uring),

/* Round trips allocate nothing. How many system calls an op takes depends on the back end and, by a sixteenth of a
 * poll, on the regulation of inline completion; tests/test_socket_latency.py has the counts. */
static const cpb_ledger ledger = {{0, 0, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, CPB_ANY, CPB_ANY}};

#define TCP_LOCKED(name, quick) RUNTIME_CELLS("socket_latency", name, quick) RAW_CELLS("socket_latency", name, quick)
#define TCP_LOCKLESS(name, quick) RUNTIME_CELLS("socket_latency", name, quick)
#define LOCAL_LOCKED(name, quick)                                                                                      \
    RUNTIME_CELLS("local_socket_latency", name, quick) RAW_CELLS("local_socket_latency", name, quick)
#define LOCAL_LOCKLESS(name, quick) RUNTIME_CELLS("local_socket_latency", name, quick)

static const cpb_case tcp_cells[] = {LOCKED_CASES(TCP_LOCKED) LOCKLESS_CASES(TCP_LOCKLESS)};
static const cpb_case local_cells[] = {LOCKED_CASES(LOCAL_LOCKED) LOCKLESS_CASES(LOCAL_LOCKLESS)};

const cpb_suite cpb_suite_socket_latency = {
    .name = "socket_latency",
    .summary = "round trips over loopback TCP, both ends in one thread (Corosio socket_latency)",
    .baselines = NET_BASELINES,
    .cells = tcp_cells,
    .cell_count = CPB_CELL_COUNT(tcp_cells),
};

const cpb_suite cpb_suite_local_socket_latency = {
    .name = "local_socket_latency",
    .summary = "round trips over a UNIX-domain socket pair, both ends in one thread (Corosio local_socket_latency)",
    .baselines = NET_BASELINES,
    .cells = local_cells,
    .cell_count = CPB_CELL_COUNT(local_cells),
};
