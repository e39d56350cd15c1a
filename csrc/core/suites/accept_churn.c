/* Suite `accept_churn` (network specification 2.1): connections made, accepted, used for one byte and closed; or made
 * and closed in bursts. One op is a cycle, or a whole burst. Small buffers and a linger of 0 s: a close sends a reset,
 * so no port waits. */
#include "suites/accept_churn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc/heap.h"

int
churn_client(churn_state *state)
{
    CPB_COUNT_N(CPB_SYSCALLS, 4);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | net_socket_flags(&state->base), 0);
    if (CPB_UNLIKELY(fd < 0))
        return -1;
    if (CPB_LIKELY(cpb_socket_make_small(fd) == 0))
        return fd;
    close(fd);
    return -1;
}

void
churn_close(churn_loop *loop)
{
    unsigned count = loop->state->burst > 0 ? loop->state->burst : 1;
    if (loop->links == NULL)
        return;
    for (unsigned i = 0; i < count; i++)
        cpb_socket_close(&loop->links[i].client);
    for (unsigned i = 0; i < count; i++)
        cpb_socket_close(&loop->links[i].server);
    cpb_heap_free(loop->links);
    loop->links = NULL;
}

bool
churn_open(churn_loop *loop)
{
    churn_state *state = loop->state;
    unsigned count = state->burst > 0 ? state->burst : 1;
    size_t size = count * sizeof *loop->links;
    loop->links = cpb_heap_alloc(size);
    loop->accepted = 0;
    bool good = loop->links != NULL;
    if (good)
        memset(loop->links, 0, size);
    for (unsigned i = 0; good && i < count; i++) {
        churn_link *link = &loop->links[i];
        link->loop = loop;
        int fd = churn_client(state);
        good = fd >= 0 && cpb_socket_open(&link->client, state->base.reactor, fd) == CPB_OK;
        if (!good && fd >= 0)
            close(fd);
    }
    if (CPB_LIKELY(good))
        return true;
    state->failed++;
    churn_close(loop);
    return false;
}

bool
churn_accepted(churn_loop *loop, int64_t fd)
{
    if (CPB_LIKELY(fd >= 0) && CPB_LIKELY(cpb_socket_open(&loop->links[loop->accepted].server,
                                                          loop->state->base.reactor, (int)fd) == CPB_OK)) {
        loop->accepted++;
        return true;
    }
    if (fd >= 0)
        close((int)fd);
    loop->state->failed++;
    return false;
}

static int
perform(churn_state *state, uint64_t ops)
{
    net_base *base = &state->base;
    state->left = ops;
    int status = CPB_OK;
    for (unsigned i = 0; i < state->loop_count; i++)
        state->loops[i].ended = false;
    if (base->contender->style == NET_RAW) {
        status = churn_perform_raw(state);
        if (status != CPB_OK)
            return base->run->host->fail(base->run, status, "no memory for a burst");
    } else {
        for (unsigned i = 0; i < state->loop_count; i++) {
            if (base->contender->style == NET_TASK)
                churn_start_task(&state->loops[i]);
            else
                churn_start_callback(&state->loops[i]);
        }
        status = net_run(base);
    }
    state->expected += ops;
    return status;
}

static int
open_listeners(cpb_run *run, churn_state *state)
{
    state->loops = calloc(state->loop_count, sizeof *state->loops);
    if (state->loops == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the loops");
    for (unsigned i = 0; i < state->loop_count; i++)
        state->loops[i].listener_fd = -1;
    for (unsigned i = 0; i < state->loop_count; i++) {
        churn_loop *loop = &state->loops[i];
        loop->state = state;
        int status = cpb_listener_open(run, &loop->listener_fd, &loop->address, true, net_socket_flags(&state->base));
        if (status != CPB_OK)
            return status;
        if (state->base.reactor != NULL &&
            cpb_socket_open(&loop->listener, state->base.reactor, loop->listener_fd) != CPB_OK)
            return run->host->fail(run, CPB_E_SYSTEM, "the reactor did not take a listener: %s", strerror(errno));
    }
    cpb_socket_note(run, state->loops[0].listener_fd);
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    churn_state *state = run->state;
    for (unsigned i = 0; state->loops != NULL && i < state->loop_count; i++) {
        churn_loop *loop = &state->loops[i];
        churn_close(loop);
        if (loop->listener.reactor != NULL && loop->listener.fd >= 0)
            cpb_socket_close(&loop->listener);
        else if (loop->listener_fd >= 0)
            close(loop->listener_fd);
    }
    net_close(&state->base);
    free(state->loops);
    run->host->release(state);
}

static int
setup(cpb_run *run)
{
    churn_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    run->state = state;
    bool burst = net_is(run->cell, "burst");
    state->burst = burst ? net_argument(run->cell, 1) : 0;
    state->loop_count = net_is(run->cell, "concurrent") ? net_argument(run->cell, 1) : 1;
    int status = net_open(&state->base, run, net_is_lockless(run->cell), 1, 0, false);
    if (status != CPB_OK) {
        run->host->release(state);
        return status;
    }
    status = cpb_need_descriptors(run, 3 * state->loop_count + 2 * state->burst + 4);
    if (status == CPB_OK)
        status = open_listeners(run, state);
    /* An untimed cycle a loop: what it proves, verify tells. */
    if (status == CPB_OK)
        status = perform(state, state->loop_count);
    if (status != CPB_OK)
        teardown(run);
    return status;
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    churn_state *state = run->state;
    if (state->failed != 0)
        return run->host->fail(run, CPB_E_FAILED, "a connection was refused or broke");
    return perform(state, ops);
}

static int
verify(cpb_run *run)
{
    const churn_state *state = run->state;
    if (state->failed != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu connections were refused, broke or carried another byte",
                               (unsigned long long)state->failed);
    if (state->done != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu cycles completed", (unsigned long long)state->done,
                               (unsigned long long)state->expected);
    return CPB_OK;
}

static const cpb_ledger ledger = {{CPB_ANY, CPB_ANY, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, CPB_ANY, CPB_ANY}};

#define CELL(case_name, contender_name, text, quick, reason)                                                           \
    {                                                                                                                  \
        .suite = "accept_churn", .name = case_name, .contender = contender_name, .summary = text, .unit = "ops/s",     \
        .direction = CPB_HIGHER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .ledger = &ledger,             \
        .unavailable = reason, .setup = setup, .run = run_ops, .verify = verify, .teardown = teardown                  \
    }
#define RUNTIMES(name, quick)                                                                                          \
    CELL(name, "callback-epoll", "callbacks on epoll", quick, NULL),                                                   \
        CELL(name, "task-epoll", "coroutines on epoll", quick, NULL),                                                  \
        CELL(name, "callback-uring", "callbacks on io_uring", quick, net_unavailable_uring),                           \
        CELL(name, "task-uring", "coroutines on io_uring", quick, net_unavailable_uring),                              \
        CELL(name, "callback-poll", "callbacks on poll", quick, NULL)
#define WITH_RAW(name, quick)                                                                                          \
    RUNTIMES(name, quick), CELL(name, "raw-epoll", "the same system calls without a runtime", quick, NULL)

static const cpb_case cells[] = {
    WITH_RAW("sequential", CPB_QUICK), RUNTIMES("sequential_lockless", 0), WITH_RAW("concurrent/1", 0),
    WITH_RAW("concurrent/4", 0),       WITH_RAW("concurrent/16", 0),       WITH_RAW("burst/10", CPB_QUICK),
    WITH_RAW("burst/100", 0),          RUNTIMES("burst_lockless/10", 0),   RUNTIMES("burst_lockless/100", 0),
};

const cpb_suite cpb_suite_accept_churn = {
    .name = "accept_churn",
    .summary = "connections made, accepted and closed (Corosio accept_churn)",
    .baselines = NET_BASELINES,
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
