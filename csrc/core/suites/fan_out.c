/* Suite `fan_out` (network specification 2.2): a parent starts sub-requests, waits for all of them, and goes on. One op
 * is one complete round of one parent. The join is one countdown and one wake-up. */
#include "suites/fan_out.h"

#include <stdlib.h>
#include <string.h>

#define PARENT_PAIRS 16u

static int
perform(fan_state *state, uint64_t ops)
{
    net_base *base = &state->base;
    state->left = ops;
    state->active = state->parent_count;
    state->rounds = state->subs = 0;
    int status;
    if (base->contender->style == NET_RAW) {
        status = fan_perform_raw(state);
        if (status != CPB_OK)
            return base->run->host->fail(base->run, status, "the raw loop ended with an error");
    } else {
        for (unsigned i = 0; i < state->parent_count; i++) {
            if (base->contender->style == NET_TASK)
                fan_start_task(&state->parents[i]);
            else
                fan_start_callback(&state->parents[i]);
        }
        status = net_run(base);
    }
    unsigned per_round = base->pair_count / state->parent_count;
    if (state->subs != state->rounds * per_round)
        state->failed++;
    state->done += state->rounds;
    state->expected += ops;
    return status;
}

/* Before anything is timed: rounds in which each pair echoes its own bytes. */
static int
prove_contents(cpb_run *run, fan_state *state)
{
    unsigned pairs = state->base.pair_count;
    for (unsigned i = 0; i < pairs; i++)
        memset(fan_sub_at(state, i)->buffer, (int)(1 + i % 255), FAN_BYTES);
    int status = perform(state, 2 * (uint64_t)state->parent_count);
    for (unsigned i = 0; status == CPB_OK && i < pairs; i++) {
        for (unsigned j = 0; j < FAN_BYTES; j++) {
            if (fan_sub_at(state, i)->buffer[j] != 1 + i % 255 || fan_echo_at(state, i)->buffer[j] != 1 + i % 255)
                return run->host->fail(run, CPB_E_FAILED, "other bytes came back than were sent");
        }
        memset(fan_sub_at(state, i)->buffer, 0, FAN_BYTES);
    }
    return status;
}

static int
make_parts(fan_state *state)
{
    net_base *base = &state->base;
    unsigned pairs = base->pair_count;
    state->ends = calloc(2 * pairs, sizeof *state->ends);
    state->parents = calloc(state->parent_count, sizeof *state->parents);
    state->groups = state->group_count > 0 ? calloc(state->group_count, sizeof *state->groups) : NULL;
    if (state->ends == NULL || state->parents == NULL || (state->group_count > 0 && state->groups == NULL))
        return base->run->host->fail(base->run, CPB_E_NO_MEMORY, "no memory for the actors");
    for (unsigned i = 0; i < pairs; i++) {
        fan_echo *echo = fan_echo_at(state, i);
        fan_sub *sub = fan_sub_at(state, i);
        echo->state = sub->state = state;
        echo->pair = sub->pair = &base->pairs[i];
        echo->op.actor = &echo->actor;
        sub->op.actor = &sub->actor;
    }
    for (unsigned i = 0; i < state->group_count; i++)
        state->groups[i] =
            (fan_join){.state = state, .first = FAN_GROUP * i, .count = FAN_GROUP, .above = &state->parents[0]};
    for (unsigned i = 0; i < state->parent_count; i++) {
        unsigned count = state->group_count > 0 ? state->group_count : pairs / state->parent_count;
        state->parents[i] = (fan_join){.state = state, .first = i * count, .count = count};
    }
    return CPB_OK;
}

static void
start_echoes(fan_state *state)
{
    for (unsigned i = 0; i < state->base.pair_count; i++) {
        if (state->base.contender->style == NET_TASK)
            fan_start_echo_task(fan_echo_at(state, i));
        else if (state->base.contender->style == NET_CALLBACK)
            fan_start_echo_callback(fan_echo_at(state, i));
    }
}

static void
teardown(cpb_run *run)
{
    fan_state *state = run->state;
    net_raw_close(&state->kernel);
    net_close(&state->base);
    free(state->groups);
    free(state->parents);
    free(state->ends);
    run->host->release(state);
}

static int
setup(cpb_run *run)
{
    fan_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    run->state = state;
    unsigned argument = net_argument(run->cell, 1), pairs = argument;
    state->parent_count = 1;
    if (net_is(run->cell, "nested")) {
        state->group_count = argument;
        pairs = FAN_GROUP * argument;
    } else if (net_is(run->cell, "concurrent_parents")) {
        state->parent_count = argument;
        pairs = PARENT_PAIRS * argument;
    }
    int status = net_open(&state->base, run, net_is_lockless(run->cell), 1, pairs, false);
    if (status != CPB_OK) {
        run->host->release(state);
        return status;
    }
    status = make_parts(state);
    if (status == CPB_OK && state->base.contender->style == NET_RAW)
        status = fan_prepare_raw(state);
    if (status == CPB_OK) {
        start_echoes(state);
        status = prove_contents(run, state);
    }
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
    const fan_state *state = run->state;
    if (state->failed != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu sub-requests or echoes failed",
                               (unsigned long long)state->failed);
    if (state->done != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu rounds completed", (unsigned long long)state->done,
                               (unsigned long long)state->expected);
    return CPB_OK;
}

static const cpb_ledger ledger = {{CPB_ANY, CPB_ANY, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, CPB_ANY, CPB_ANY}};

#define CELL(case_name, contender_name, text, quick, reason)                                                           \
    {                                                                                                                  \
        .suite = "fan_out", .name = case_name, .contender = contender_name, .summary = text, .unit = "ops/s",          \
        .direction = CPB_HIGHER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .ledger = &ledger,             \
        .unavailable = reason, .setup = setup, .run = run_ops, .verify = verify, .teardown = teardown                  \
    }
#define RUNTIMES(name, quick)                                                                                          \
    CELL(name, "callback-epoll", "callbacks on epoll", quick, NULL),                                                   \
        CELL(name, "task-epoll", "coroutines on epoll", quick, NULL),                                                  \
        CELL(name, "callback-uring", "callbacks on io_uring", quick, net_unavailable_uring),                           \
        CELL(name, "task-uring", "coroutines on io_uring", quick, net_unavailable_uring),                              \
        CELL(name, "callback-poll", "callbacks on poll", quick, NULL)
#define BOTH(family, argument, quick)                                                                                  \
    RUNTIMES(family "/" argument, quick),                                                                              \
        CELL(family "/" argument, "raw-epoll", "the same system calls without a runtime", quick, NULL),                \
        CELL(family "/" argument, "raw-uring", "the same submissions without a runtime", quick,                        \
             net_unavailable_uring),                                                                                   \
        RUNTIMES(family "_lockless/" argument, 0)

static const cpb_case cells[] = {
    BOTH("fork_join", "1", 0),           BOTH("fork_join", "4", 0),
    BOTH("fork_join", "16", CPB_QUICK),  BOTH("fork_join", "64", 0),
    BOTH("nested", "4", CPB_QUICK),      BOTH("nested", "16", 0),
    BOTH("concurrent_parents", "1", 0),  BOTH("concurrent_parents", "4", CPB_QUICK),
    BOTH("concurrent_parents", "16", 0),
};

const cpb_suite cpb_suite_fan_out = {
    .name = "fan_out",
    .summary = "a parent that waits for sub-requests on many connections (Corosio fan_out)",
    .baselines = NET_BASELINES,
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
