/* Suites `socket_latency` and `local_socket_latency` (network specification 2.4, 2.6): ping-pong over one pair or
 * several. One op is a round trip of a pair, four composed steps made by one sequential actor that owns both ends; the
 * metric is the mean of the ops' own times. */
#include "suites/socket_latency.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "suites/suite.h"

typedef struct config {
    const char *name;
    unsigned pairs;
    size_t message;
    bool lockless;
} config;

/* Released and parked with the state: with a thread in the process glibc's locks are real. */
typedef struct latency_run {
    latency_state state; /* first */
    cpb_parked_thread parked;
    unsigned char *buffers;
    unsigned opened; /* actors whose pair is open */
} latency_run;

static const latency_style styles[] = {
    {"callback-epoll", CPB_REACTOR_EPOLL, latency_start_callback, NULL, NULL, NULL},
    {"task-epoll", CPB_REACTOR_EPOLL, latency_start_task, NULL, NULL, NULL},
    {"callback-uring", CPB_REACTOR_URING, latency_start_callback, NULL, NULL, NULL},
    {"task-uring", CPB_REACTOR_URING, latency_start_task, NULL, NULL, NULL},
    {"callback-poll", CPB_REACTOR_POLL, latency_start_callback, NULL, NULL, NULL},
    {"raw-epoll", CPB_REACTOR_EPOLL, NULL, latency_prepare_epoll, latency_perform_epoll, latency_finish_epoll},
    {"raw-uring", CPB_REACTOR_URING, NULL, latency_prepare_uring, latency_perform_uring, latency_finish_uring},
};

static const char *
unavailable_uring(void)
{
    return cpb_reactor_unavailable(CPB_REACTOR_URING);
}

static void
close_all(latency_run *self)
{
    latency_state *state = &self->state;
    for (unsigned i = 0; i < self->opened; i++) {
        latency_actor *actor = &state->actors[i];
        if (state->reactor != NULL) {
            cpb_socket_close(&actor->client);
            cpb_socket_close(&actor->server);
            actor->pair.client = actor->client.reactor != NULL ? -1 : actor->pair.client;
            actor->pair.server = actor->server.reactor != NULL ? -1 : actor->pair.server;
        }
        cpb_pair_close(&actor->pair);
    }
    if (state->style->finish != NULL)
        state->style->finish(state);
    cpb_reactor_destroy(state->reactor);
    free(self->buffers);
    free(state->actors);
}

/* Pairs, and their sockets in the context. */
static int
open_pairs(cpb_run *run, latency_run *self)
{
    latency_state *state = &self->state;
    int flags = state->reactor != NULL                       ? cpb_reactor_socket_flags(state->reactor)
                : state->style->reactor == CPB_REACTOR_URING ? 0
                                                             : SOCK_NONBLOCK;
    for (unsigned i = 0; i < state->pairs; i++) {
        latency_actor *actor = &state->actors[i];
        int status = cpb_pair_open(run, &actor->pair, state->local, flags);
        if (status != CPB_OK)
            return status;
        self->opened++;
        actor->state = state;
        actor->op.actor = &actor->actor;
        actor->out = self->buffers + (size_t)i * 3 * state->message;
        actor->in = actor->out + state->message;
        actor->back = actor->in + state->message;
        if (state->reactor == NULL)
            continue;
        if (cpb_socket_open(&actor->client, state->reactor, actor->pair.client) != CPB_OK ||
            cpb_socket_open(&actor->server, state->reactor, actor->pair.server) != CPB_OK)
            return run->host->fail(run, CPB_E_SYSTEM, "the reactor did not take a socket");
    }
    cpb_socket_note(run, state->actors[0].pair.client);
    return CPB_OK;
}

static int
perform(latency_state *state, uint64_t ops)
{
    state->left = ops;
    for (unsigned i = 0; i < state->pairs; i++)
        state->actors[i].ops = 0;
    if (state->style->perform != NULL)
        return state->style->perform(state);
    for (unsigned i = 0; i < state->pairs; i++)
        state->style->start(&state->actors[i]);
    int status = cpb_reactor_run(state->reactor);
    return state->status != CPB_OK ? state->status : status;
}

/* Before anything is timed: one op a pair with bytes that only this pair has, compared at both ends. */
static int
prove_contents(cpb_run *run, latency_state *state)
{
    for (unsigned i = 0; i < state->pairs; i++) {
        for (size_t j = 0; j < state->message; j++)
            state->actors[i].out[j] = (unsigned char)(1 + (i * 31 + j * 7) % 255);
    }
    int status = perform(state, state->pairs);
    for (unsigned i = 0; status == CPB_OK && i < state->pairs; i++) {
        const latency_actor *actor = &state->actors[i];
        if (actor->ops == 0)
            continue; /* a pair that was too late to claim one; the sums below hold for all */
        if (memcmp(actor->out, actor->in, state->message) != 0 || memcmp(actor->out, actor->back, state->message) != 0)
            return run->host->fail(run, CPB_E_FAILED, "other bytes arrived than were sent");
    }
    if (status != CPB_OK || state->failed != 0 || state->latency.count != state->pairs)
        return run->host->fail(run, status != CPB_OK ? status : CPB_E_FAILED,
                               "the untimed round trips did not complete");
    for (unsigned i = 0; i < state->pairs; i++)
        memset(state->actors[i].out, 'P', state->message);
    memset(&state->latency, 0, sizeof state->latency);
    return CPB_OK;
}

static int
prepare(cpb_run *run, latency_run *self)
{
    latency_state *state = &self->state;
    state->actors = calloc(state->pairs, sizeof *state->actors);
    self->buffers = calloc(3 * (size_t)state->pairs, state->message);
    if (state->actors == NULL || self->buffers == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the actors");
    int status = cpb_need_descriptors(run, 2 * state->pairs + 4);
    if (status != CPB_OK)
        return status;
    if (state->style->start != NULL &&
        (status = cpb_reactor_create(&state->reactor, state->style->reactor, state->lockless, 1)) != CPB_OK)
        return run->host->fail(run, status, "the reactor could not be made");
    status = open_pairs(run, self);
    if (status == CPB_OK && state->style->prepare != NULL && (status = state->style->prepare(state)) != CPB_OK)
        return run->host->fail(run, status, "the raw loop could not be prepared");
    return status == CPB_OK ? prove_contents(run, state) : status;
}

static void
teardown(cpb_run *run)
{
    latency_run *self = run->state;
    close_all(self);
    cpb_parked_thread_stop(&self->parked);
    run->host->release(self);
    cpb_recycling_drain();
}

static int
setup_with(cpb_run *run, const config *how, const latency_style *style, bool local)
{
    latency_run *self = run->host->alloc(sizeof *self);
    if (self == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    latency_state *state = &self->state;
    run->state = self;
    state->run = run;
    state->style = style;
    state->pairs = how->pairs;
    state->message = how->message;
    state->lockless = how->lockless;
    state->local = local;
    state->env.allocator = cpb_recycling_resource();
    state->env.stop = &state->stop;
    if (cpb_parked_thread_start(&self->parked) != CPB_OK) {
        run->host->release(self);
        return run->host->fail(run, CPB_E_SYSTEM, "the parked thread could not be started");
    }
    int status = prepare(run, self);
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
        return run->host->fail(run, status, "the loop ended with an error");
    state->expected += ops;
    run->reported_ns = state->latency.sum - before;
    uint64_t least = UINT64_MAX, most = 0;
    for (unsigned i = 0; i < state->pairs; i++) {
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

/* X(case, pairs, message, lockless, quick) */
#define LOCKED_CASES(X)                                                                                                \
    X("pingpong/1", 1, 1, false, 0)                                                                                    \
    X("pingpong/64", 1, 64, false, CPB_QUICK)                                                                          \
    X("pingpong/1024", 1, 1024, false, 0)                                                                              \
    X("concurrent/1", 1, 64, false, 0)                                                                                 \
    X("concurrent/4", 4, 64, false, 0)                                                                                 \
    X("concurrent/16", 16, 64, false, CPB_QUICK)
#define LOCKLESS_CASES(X)                                                                                              \
    X("pingpong_lockless/1", 1, 1, true, 0)                                                                            \
    X("pingpong_lockless/64", 1, 64, true, CPB_QUICK)                                                                  \
    X("pingpong_lockless/1024", 1, 1024, true, 0)                                                                      \
    X("concurrent_lockless/1", 1, 64, true, 0)                                                                         \
    X("concurrent_lockless/4", 4, 64, true, 0)                                                                         \
    X("concurrent_lockless/16", 16, 64, true, 0)

static const config configs[] = {
#define CONFIG(name, pairs, message, lockless, quick) {name, pairs, message, lockless},
    LOCKED_CASES(CONFIG) LOCKLESS_CASES(CONFIG)
#undef CONFIG
};

static int
setup(cpb_run *run)
{
    const config *how = configs;
    const latency_style *style = styles;
    while (strcmp(how->name, run->cell->name) != 0)
        how++;
    while (strcmp(style->contender, run->cell->contender) != 0)
        style++;
    return setup_with(run, how, style, run->cell->suite[0] == 'l');
}

#define CELL(suite_name, case_name, contender_name, text, quick, reason)                                               \
    {                                                                                                                  \
        .suite = suite_name, .name = case_name, .contender = contender_name, .summary = text, .unit = "ns/op",         \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .ledger = &ledger,              \
        .unavailable = reason, .setup = setup, .run = run_ops, .verify = verify, .teardown = teardown                  \
    }
#define RUNTIME_CELLS(suite, name, quick)                                                                              \
    CELL(suite, name, "callback-epoll", "callbacks on epoll", quick, NULL),                                            \
        CELL(suite, name, "task-epoll", "a coroutine on epoll", quick, NULL),                                          \
        CELL(suite, name, "callback-uring", "callbacks on io_uring", quick, unavailable_uring),                        \
        CELL(suite, name, "task-uring", "a coroutine on io_uring", quick, unavailable_uring),                          \
        CELL(suite, name, "callback-poll", "callbacks on poll", quick, NULL),
#define RAW_CELLS(suite, name, quick)                                                                                  \
    CELL(suite, name, "raw-epoll", "the same system calls without a runtime", quick, NULL),                            \
        CELL(suite, name, "raw-uring", "the same submissions without a runtime", quick, unavailable_uring),

/* Round trips allocate nothing. How many system calls an op takes depends on the back end and, by a sixteenth of a
 * poll, on the regulation of inline completion; tests/test_socket_latency.py has the counts. */
static const cpb_ledger ledger = {{0, 0, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, CPB_ANY, CPB_ANY}};

#define TCP_LOCKED(name, pairs, message, lockless, quick)                                                              \
    RUNTIME_CELLS("socket_latency", name, quick) RAW_CELLS("socket_latency", name, quick)
#define TCP_LOCKLESS(name, pairs, message, lockless, quick) RUNTIME_CELLS("socket_latency", name, quick)
#define LOCAL_LOCKED(name, pairs, message, lockless, quick)                                                            \
    RUNTIME_CELLS("local_socket_latency", name, quick) RAW_CELLS("local_socket_latency", name, quick)
#define LOCAL_LOCKLESS(name, pairs, message, lockless, quick) RUNTIME_CELLS("local_socket_latency", name, quick)

static const cpb_case tcp_cells[] = {LOCKED_CASES(TCP_LOCKED) LOCKLESS_CASES(TCP_LOCKLESS)};
static const cpb_case local_cells[] = {LOCKED_CASES(LOCAL_LOCKED) LOCKLESS_CASES(LOCAL_LOCKLESS)};

const cpb_suite cpb_suite_socket_latency = {
    .name = "socket_latency",
    .summary = "round trips over loopback TCP, both ends in one thread (Corosio socket_latency)",
    .baselines = "asio-callback callback-epoll",
    .cells = tcp_cells,
    .cell_count = CPB_CELL_COUNT(tcp_cells),
};

const cpb_suite cpb_suite_local_socket_latency = {
    .name = "local_socket_latency",
    .summary = "round trips over a UNIX-domain socket pair, both ends in one thread (Corosio local_socket_latency)",
    .baselines = "asio-callback callback-epoll",
    .cells = local_cells,
    .cell_count = CPB_CELL_COUNT(local_cells),
};
