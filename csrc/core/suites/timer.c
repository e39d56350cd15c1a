/* Suite `timer` (network specification 2.8): timers made and cancelled, a timer that fires at once, and many of them.
 * items/s: one item is a timer made and cancelled, or a firing. */
#include <errno.h>
#include <stdlib.h>

#include "suites/net_suite.h"

#define BATCH 1000u
#define ONE_HOUR_NS UINT64_C(3600000000000)

typedef struct timer_state timer_state;

/* One actor: waits for its timer again and again. */
typedef struct timer_actor {
    cpb_timer timer; /* first; its op comes first in it */
    timer_state *state;
    uint64_t interval_ns;
    uint64_t fired;
    cpb_frame *frame;
} timer_actor;

struct timer_state {
    net_base base; /* first */
    timer_actor *actors;
    unsigned actor_count;
    uint64_t left, failed, expected, done;
};

static bool
claim(timer_state *state)
{
    if (state->left == 0)
        return false;
    state->left--;
    return true;
}

/* Arms it for its next firing; false, and counted as failed, without memory. */
static bool
arm(timer_actor *self)
{
    uint64_t deadline = cpb_clock_ns() + self->interval_ns;
    if (CPB_LIKELY(cpb_timer_start(&self->timer, self->state->base.reactor, deadline)))
        return true;
    self->state->failed++;
    return false;
}

static void
account(timer_actor *self)
{
    if (CPB_UNLIKELY(self->timer.op.result != 0))
        self->state->failed++;
    self->fired++;
    self->state->done++;
}

static void
on_fired(cpb_op *op)
{
    timer_actor *self = (timer_actor *)(void *)op;
    account(self);
    if (claim(self->state))
        arm(self);
}

typedef struct waiter {
    cpb_task base;
    timer_actor *actor;
} waiter;

CPB_NOINLINE static void
destroy_waiter(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(waiter));
}

CPB_NOINLINE static cpb_frame *
resume_waiter(cpb_frame *frame)
{
    waiter *self = (waiter *)(void *)frame;
    cpb_env_restore_allocator(self->base.env);
    if (frame->state == 1)
        account(self->actor);
    frame->state = 1;
    if (!claim(self->actor->state) || !arm(self->actor))
        destroy_waiter(frame);
    return NULL;
}

static void
resume_op(cpb_op *op)
{
    cpb_frame_drive(((timer_actor *)(void *)op)->frame);
}

static void
start(timer_state *state, timer_actor *actor)
{
    if (state->base.contender->style == NET_CALLBACK) {
        actor->timer.op.complete = on_fired;
        if (claim(state))
            arm(actor);
        return;
    }
    cpb_task *task = net_task(&state->base, sizeof(waiter), resume_waiter, destroy_waiter);
    if (task == NULL)
        return;
    ((waiter *)task)->actor = actor;
    actor->frame = &task->frame;
    actor->timer.op.complete = resume_op;
    cpb_frame_drive(&task->frame);
}

static int
run_firings(cpb_run *run, uint64_t ops)
{
    timer_state *state = run->state;
    state->left = ops;
    for (unsigned i = 0; i < state->actor_count; i++)
        start(state, &state->actors[i]);
    state->expected += ops;
    return net_run(&state->base);
}

/* A timer on the stack: made, set, cancelled, gone. No wait was ever started, so that cancelling finds nothing to do.
 */
CPB_NOINLINE static void
schedule_and_cancel(timer_state *state)
{
    cpb_timer timer = {.reactor = state->base.reactor, .deadline_ns = cpb_clock_ns() + ONE_HOUR_NS};
    cpb_escape(&timer);
    cpb_timer_cancel(&timer);
    cpb_escape(&timer);
    state->failed += timer.place != 0;
    state->done++;
}

static int
run_schedules(cpb_run *run, uint64_t ops)
{
    timer_state *state = run->state;
    for (uint64_t i = 0; i < ops; i += BATCH) {
        for (unsigned j = 0; j < BATCH; j++)
            schedule_and_cancel(state);
        cpb_reactor_poll(state->base.reactor);
        cpb_reactor_restart(state->base.reactor);
    }
    state->expected += ops;
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    timer_state *state = run->state;
    net_close(&state->base);
    free(state->actors);
    run->host->release(state);
}

static int
setup(cpb_run *run)
{
    timer_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    run->state = state;
    bool concurrent = net_is(run->cell, "concurrent");
    unsigned count = concurrent ? net_argument(run->cell, 1) : 1;
    int status = net_open(&state->base, run, net_is_lockless(run->cell), 1, 0, false);
    if (status != CPB_OK) {
        run->host->release(state);
        return status;
    }
    state->actor_count = count;
    state->actors = calloc(count, sizeof *state->actors);
    if (state->actors == NULL) {
        teardown(run);
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the timers");
    }
    for (unsigned i = 0; i < count; i++) {
        state->actors[i].state = state;
        /* 100 to 1000 us, spread evenly. */
        if (concurrent)
            state->actors[i].interval_ns = (100 + 900 * (uint64_t)i / (count > 1 ? count - 1 : 1)) * 1000;
    }
    return CPB_OK;
}

static int
verify(cpb_run *run)
{
    const timer_state *state = run->state;
    if (state->failed != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu timers failed", (unsigned long long)state->failed);
    if (state->done != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu timers came to their end",
                               (unsigned long long)state->done, (unsigned long long)state->expected);
    return CPB_OK;
}

static const cpb_ledger ledger = {{0, 0, 0, CPB_ANY, CPB_ANY, 0, 0, CPB_ANY, CPB_ANY, CPB_ANY}};

#define CELL(case_name, contender_name, text, quick, run_function, step_size, reason)                                  \
    {                                                                                                                  \
        .suite = "timer", .name = case_name, .contender = contender_name, .summary = text, .unit = "items/s",          \
        .direction = CPB_HIGHER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = quick, .step = step_size,             \
        .ledger = &ledger, .unavailable = reason, .setup = setup, .run = run_function, .verify = verify,               \
        .teardown = teardown                                                                                           \
    }
#define CASE(name, quick, run_function, step)                                                                          \
    CELL(name, "callback-epoll", "callbacks on epoll", quick, run_function, step, NULL),                               \
        CELL(name, "task-epoll", "coroutines on epoll", quick, run_function, step, NULL),                              \
        CELL(name, "callback-uring", "callbacks on io_uring", quick, run_function, step, net_unavailable_uring),       \
        CELL(name, "task-uring", "coroutines on io_uring", quick, run_function, step, net_unavailable_uring),          \
        CELL(name, "callback-poll", "callbacks on poll", quick, run_function, step, NULL)

static const cpb_case cells[] = {
    CASE("schedule_cancel", CPB_QUICK, run_schedules, BATCH),
    CASE("schedule_cancel_lockless", 0, run_schedules, BATCH),
    CASE("fire_rate", CPB_QUICK, run_firings, 1),
    CASE("fire_rate_lockless", 0, run_firings, 1),
    CASE("concurrent/10", 0, run_firings, 10),
    CASE("concurrent/100", 0, run_firings, 100),
    CASE("concurrent/1000", 0, run_firings, 1000),
};

const cpb_suite cpb_suite_timer = {
    .name = "timer",
    .summary = "timers that are cancelled and timers that fire (Corosio timer)",
    .baselines = NET_BASELINES,
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
