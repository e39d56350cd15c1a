/* Suites `socket_throughput` and `local_socket_throughput` (network specification 2.5, 2.6): writers and readers of
 * streams. One op is one chunk's worth of bytes received; the bytes of all directions are summed. */
#include "suites/socket_throughput.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

#define MULTITHREAD_PAIRS 32u
#define MULTITHREAD_CHUNK 65536u

/* Bytes of this run for each direction: an even share of the ops. */
static void
share(throughput_state *state, uint64_t ops)
{
    for (unsigned d = 0; d < state->directions; d++) {
        uint64_t mine = ops / state->directions + (d < ops % state->directions);
        state->actors[2 * d].left = state->actors[2 * d + 1].left = mine * state->chunk;
    }
}

static int
perform(throughput_state *state, uint64_t ops)
{
    net_base *base = &state->base;
    share(state, ops);
    int status = CPB_OK;
    if (base->contender->style == NET_RAW) {
        status = throughput_perform_raw(state);
        if (status != CPB_OK)
            return base->run->host->fail(base->run, status, "the raw loop ended with an error");
    } else {
        for (unsigned i = 0; i < 2 * state->directions; i++) {
            if (state->actors[i].left == 0)
                continue;
            if (base->contender->style == NET_TASK)
                throughput_start_task(&state->actors[i]);
            else
                throughput_start_callback(&state->actors[i]);
        }
        status = net_run(base);
    }
    for (unsigned d = 0; d < state->directions; d++) {
        uint64_t mine = ops / state->directions + (d < ops % state->directions);
        state->received += mine * state->chunk - state->actors[2 * d + 1].left;
    }
    state->expected += ops * state->chunk;
    return status;
}

static unsigned char
byte_of(unsigned direction)
{
    return (unsigned char)(1 + direction * 37 % 255);
}

/* Before anything is timed: a chunk each way, whose every byte is the direction's own. */
static int
prove_contents(cpb_run *run, throughput_state *state)
{
    for (unsigned d = 0; d < state->directions; d++) {
        memset(state->actors[2 * d].buffer, byte_of(d), state->chunk);
        memset(state->actors[2 * d + 1].buffer, byte_of(d), state->chunk);
        state->actors[2 * d + 1].buffer[0] = 0;
    }
    int status = perform(state, state->directions);
    if (status != CPB_OK)
        return status;
    for (unsigned d = 0; d < state->directions; d++) {
        const unsigned char *got = state->actors[2 * d + 1].buffer;
        for (size_t i = 0; i < state->chunk; i++) {
            if (got[i] != byte_of(d))
                return run->host->fail(run, CPB_E_FAILED, "other bytes arrived than were sent");
        }
    }
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    throughput_state *state = run->state;
    net_raw_close(&state->kernel);
    net_close(&state->base);
    free(state->buffers);
    free(state->actors);
    run->host->release(state);
}

/* Writer 1, reader 1, and with two directions writer 2, reader 2 on the same pair. */
static int
make_actors(throughput_state *state, unsigned per_pair)
{
    net_base *base = &state->base;
    unsigned count = 2 * state->directions;
    state->actors = calloc(count, sizeof *state->actors);
    state->buffers = malloc((size_t)count * state->chunk);
    if (state->actors == NULL || state->buffers == NULL)
        return CPB_E_NO_MEMORY;
    memset(state->buffers, 0, (size_t)count * state->chunk);
    for (unsigned i = 0; i < count; i++) {
        throughput_actor *actor = &state->actors[i];
        net_pair *pair = &base->pairs[i / 2 / per_pair];
        bool from_client = i / 2 % per_pair == 0;
        actor->writes = i % 2 == 0;
        bool at_client = actor->writes == from_client;
        actor->state = state;
        actor->op.actor = &actor->actor;
        actor->socket = at_client ? &pair->client : &pair->server;
        actor->fd = at_client ? pair->fds.client : pair->fds.server;
        actor->buffer = state->buffers + (size_t)i * state->chunk;
    }
    return CPB_OK;
}

static int
setup(cpb_run *run)
{
    throughput_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    run->state = state;
    bool multi = net_is(run->cell, "multithread");
    unsigned per_pair = net_is(run->cell, "unidirectional") ? 1 : 2;
    unsigned pairs = multi ? MULTITHREAD_PAIRS : 1;
    state->chunk = multi ? MULTITHREAD_CHUNK : net_argument(run->cell, 0);
    state->directions = pairs * per_pair;
    int status = net_open(&state->base, run, net_is_lockless(run->cell), multi ? net_argument(run->cell, 1) : 1, pairs,
                          run->cell->suite[0] == 'l');
    if (status != CPB_OK) {
        run->host->release(state);
        return status;
    }
    status = make_actors(state, per_pair);
    if (status != CPB_OK)
        run->host->fail(run, status, "no memory for the actors");
    else if (state->base.contender->style == NET_RAW)
        status = throughput_prepare_raw(state);
    if (status == CPB_OK)
        status = prove_contents(run, state);
    if (status != CPB_OK)
        teardown(run);
    return status;
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    return perform(run->state, ops);
}

static int
verify(cpb_run *run)
{
    throughput_state *state = run->state;
    uint64_t failed = atomic_load(&state->failed);
    if (failed != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu reads or writes failed", (unsigned long long)failed);
    if (state->received != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu bytes were received",
                               (unsigned long long)state->received, (unsigned long long)state->expected);
    return CPB_OK;
}

/* Streams allocate nothing an op; calls depend on how the kernel cuts them. */
static const cpb_ledger ledger = {{CPB_ANY, CPB_ANY, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, CPB_ANY, CPB_ANY}};

#define CELL(suite_name, case_name, contender_name, text, chunk, cpu_count, quick, reason)                             \
    {                                                                                                                  \
        .suite = suite_name, .name = case_name, .contender = contender_name, .summary = text, .unit = "bytes/s",       \
        .direction = CPB_HIGHER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .cpus = cpu_count,             \
        .bytes_per_op = chunk, .ledger = &ledger, .unavailable = reason, .setup = setup, .run = run_ops,               \
        .verify = verify, .teardown = teardown                                                                         \
    }
#define RUNTIMES(suite, name, chunk, cpus, quick)                                                                      \
    CELL(suite, name, "callback-epoll", "callbacks on epoll", chunk, cpus, quick, NULL),                               \
        CELL(suite, name, "task-epoll", "coroutines on epoll", chunk, cpus, quick, NULL),                              \
        CELL(suite, name, "callback-uring", "callbacks on io_uring", chunk, cpus, quick, net_unavailable_uring),       \
        CELL(suite, name, "task-uring", "coroutines on io_uring", chunk, cpus, quick, net_unavailable_uring),          \
        CELL(suite, name, "callback-poll", "callbacks on poll", chunk, cpus, quick, NULL),
#define RAW(suite, name, chunk, quick)                                                                                 \
    CELL(suite, name, "raw-epoll", "the same system calls without a runtime", chunk, 1, quick, NULL),                  \
        CELL(suite, name, "raw-uring", "the same submissions without a runtime", chunk, 1, quick,                      \
             net_unavailable_uring),

/* Both variants of a chunk size. */
#define CHUNK(suite, family, size, quick)                                                                              \
    RUNTIMES(suite, family "/" #size, size, 1, quick)                                                                  \
    RAW(suite, family "/" #size, size, quick)                                                                          \
    RUNTIMES(suite, family "_lockless/" #size, size, 1, 0)
#define FAMILY(suite, family, quick_1024, quick_65536)                                                                 \
    CHUNK(suite, family, 1024, quick_1024)                                                                             \
    CHUNK(suite, family, 4096, 0)                                                                                      \
    CHUNK(suite, family, 16384, 0)                                                                                     \
    CHUNK(suite, family, 65536, quick_65536)                                                                           \
    CHUNK(suite, family, 262144, 0)                                                                                    \
    CHUNK(suite, family, 1048576, 0)

static const cpb_case tcp_cells[] = {
    /* clang-format off */
    FAMILY("socket_throughput", "unidirectional", CPB_QUICK, CPB_QUICK)
    FAMILY("socket_throughput", "bidirectional", 0, CPB_QUICK)
    RUNTIMES("socket_throughput", "multithread/2", MULTITHREAD_CHUNK, 2, CPB_QUICK)
    RUNTIMES("socket_throughput", "multithread/4", MULTITHREAD_CHUNK, 4, 0)
    RUNTIMES("socket_throughput", "multithread/8", MULTITHREAD_CHUNK, 8, 0)
    /* clang-format on */
};
static const cpb_case local_cells[] = {
    /* clang-format off */
    FAMILY("local_socket_throughput", "unidirectional", 0, CPB_QUICK)
    FAMILY("local_socket_throughput", "bidirectional", 0, 0)
    /* clang-format on */
};

const cpb_suite cpb_suite_socket_throughput = {
    .name = "socket_throughput",
    .summary = "streams over loopback TCP, writers and readers in one context (Corosio socket_throughput)",
    .baselines = NET_BASELINES,
    .cells = tcp_cells,
    .cell_count = CPB_CELL_COUNT(tcp_cells),
};

const cpb_suite cpb_suite_local_socket_throughput = {
    .name = "local_socket_throughput",
    .summary = "streams over UNIX-domain socket pairs (Corosio local_socket_throughput)",
    .baselines = NET_BASELINES,
    .cells = local_cells,
    .cell_count = CPB_CELL_COUNT(local_cells),
};
