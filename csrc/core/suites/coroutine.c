/* Suite `coroutine` (specification A): what it costs to start, chain and switch coroutines. One op is a complete
 * launch, from building the launch object to the completion handler. */
#include "base/compiler.h"
#include "rt/bench_executor.h"
#include "rt/strand.h"
#include "rt/task.h"
#include "suites/coroutine_bodies.h"
#include "suites/suite.h"

typedef struct coroutine_state {
    cpb_bench_context context1, context2;
    cpb_strand_service service1, service2;
    cpb_strand strand1, strand2;
    cpb_stop_token stop;
    cpb_launch_params params;
    cpb_executor target; /* of the switching chain */
    int last;            /* what the last handler stored */
    uint64_t sum;        /* of all handlers' values */
    uint64_t ops;
    cpb_callback_chain callbacks;
} coroutine_state;

bool
cpb_foreign_ready(void)
{
    return true;
}

void
cpb_foreign_resume(void)
{
}

/* The completion handler: stores the int outside the loop, and sums it so that every launch is accounted for. */
static void
store_value(void *context, int value)
{
    coroutine_state *state = context;
    state->last = value;
    state->sum += (uint64_t)value;
}

static void
store_callback_value(cpb_callback_chain *chain, int value)
{
    chain->last = value;
    chain->sum += (uint64_t)value;
}

static int
setup_plain(cpb_run *run)
{
    coroutine_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the coroutine state");
    run->state = state;
    state->context1.allocator = cpb_recycling_resource();
    state->context2.allocator = cpb_recycling_resource();
    cpb_strand_service_init(&state->service1);
    cpb_strand_service_init(&state->service2);
    state->target = cpb_bench_executor(&state->context2);
    state->params = (cpb_launch_params){
        .executor = cpb_bench_executor(&state->context1),
        .allocator = state->context1.allocator,
        .stop = &state->stop,
        .handler = store_value,
        .context = state,
    };
    cpb_callback_chain_init(&state->callbacks);
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    coroutine_state *state = run->state;
    cpb_strand_fini(&state->strand1);
    cpb_strand_fini(&state->strand2);
    cpb_strand_service_fini(&state->service1);
    cpb_strand_service_fini(&state->service2);
    run->host->release(state);
    cpb_recycling_drain();
}

static int
setup_strand(cpb_run *run)
{
    int status = setup_plain(run);
    if (status != CPB_OK)
        return status;
    coroutine_state *state = run->state;
    status = cpb_strand_init(&state->strand1, &state->service1, cpb_bench_executor(&state->context1));
    if (status == CPB_OK)
        status = cpb_strand_init(&state->strand2, &state->service2, cpb_bench_executor(&state->context2));
    if (status != CPB_OK) {
        teardown(run);
        return run->host->fail(run, status, "no memory for a strand");
    }
    state->params.executor = cpb_strand_executor(&state->strand1);
    state->params.references = &state->strand1.impl->references;
    state->target = cpb_strand_executor(&state->strand2);
    return CPB_OK;
}

/* The timed loop, once per chain, so that each calls its ramp directly as the original does. */
#define DEFINE_RUN(name, ramp)                                                                                         \
    CPB_NOINLINE static int name(cpb_run *run, uint64_t ops)                                                           \
    {                                                                                                                  \
        coroutine_state *state = run->state;                                                                           \
        for (uint64_t i = 0; i < ops; i++) {                                                                           \
            cpb_launch launch;                                                                                         \
            if (CPB_UNLIKELY(cpb_launch_begin(&launch, &state->params) != CPB_OK) ||                                   \
                CPB_UNLIKELY(cpb_launch_start(&launch, ramp) != CPB_OK))                                               \
                return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for a coroutine frame");                       \
        }                                                                                                              \
        state->ops += ops;                                                                                             \
        return CPB_OK;                                                                                                 \
    }

DEFINE_RUN(run_chain1, cpb_coroutine_chain1())
DEFINE_RUN(run_chain2, cpb_coroutine_chain2())
DEFINE_RUN(run_chain3, cpb_coroutine_chain3())
DEFINE_RUN(run_chain4, cpb_coroutine_chain4())
DEFINE_RUN(run_switching, cpb_coroutine_switching(state->target))

#define DEFINE_CALLBACK_RUN(name, depth)                                                                               \
    CPB_NOINLINE static int name(cpb_run *run, uint64_t ops)                                                           \
    {                                                                                                                  \
        coroutine_state *state = run->state;                                                                           \
        cpb_callback_chain *chain = cpb_launder(&state->callbacks);                                                    \
        for (uint64_t i = 0; i < ops; i++)                                                                             \
            CPB_INDIRECT(chain->starts[depth])(chain, store_callback_value);                                           \
        state->ops += ops;                                                                                             \
        return CPB_OK;                                                                                                 \
    }

DEFINE_CALLBACK_RUN(run_callback1, 1)
DEFINE_CALLBACK_RUN(run_callback2, 2)
DEFINE_CALLBACK_RUN(run_callback3, 3)
DEFINE_CALLBACK_RUN(run_callback4, 4)

static int
verify_values(cpb_run *run, int last, uint64_t sum, uint64_t ops)
{
    if (ops > 0 && last != CPB_COROUTINE_VALUE)
        return run->host->fail(run, CPB_E_FAILED, "the last handler got %d, not %d", last, CPB_COROUTINE_VALUE);
    if (sum != ops * CPB_COROUTINE_VALUE)
        return run->host->fail(run, CPB_E_FAILED, "the handlers' values sum to %llu, not %llu", (unsigned long long)sum,
                               (unsigned long long)(ops * CPB_COROUTINE_VALUE));
    return CPB_OK;
}

static int
verify_task(cpb_run *run)
{
    const coroutine_state *state = run->state;
    return verify_values(run, state->last, state->sum, state->ops);
}

static int
verify_callback(cpb_run *run)
{
    const coroutine_state *state = run->state;
    return verify_values(run, state->callbacks.last, state->callbacks.sum, state->ops);
}

/* Indirect calls, read off the ledger build. A chain of depth d: dispatch, d starts, d-1 resumptions of parents,
 * trampoline, invoke, handler, destruction of the outermost task, and the trampoline's allocate and deallocate: 2d + 6.
 * A strand adds the post of the invoker and its resumption: 2d + 8. */
#define LEDGER(allocs, invokers, calls, rmws, stores, refs, mutexes, posts)                                            \
    (&(const cpb_ledger){{0, allocs, invokers, calls, rmws, stores, refs, mutexes, posts, 0}})

#define CELL(case_name, contender_name, text, cell_flags, expected, setup_function, run_function, verify_function)     \
    {                                                                                                                  \
        .suite = "coroutine", .name = case_name, .contender = contender_name, .summary = text, .unit = "ns/op",        \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_SINGLE, .flags = cell_flags, .ledger = expected,          \
        .setup = setup_function, .run = run_function, .verify = verify_function, .teardown = teardown                  \
    }
#define TASK(case_name, text, cell_flags, expected, setup_function, run_function)                                      \
    CELL(case_name, "task", text, cell_flags, expected, setup_function, run_function, verify_task)
#define CALLBACK(case_name, cell_flags, calls, run_function)                                                           \
    CELL(case_name, "callback", "the same control flow through function pointers, without frames: a floor",            \
         cell_flags, LEDGER(0, 0, calls, 0, 0, 0, 0, 0), setup_plain, run_function, verify_callback)

static const cpb_case cells[] = {
    TASK("run_async/depth1", "launch one task on a plain executor", CPB_QUICK, LEDGER(2, 0, 8, 0, 0, 0, 0, 0),
         setup_plain, run_chain1),
    CALLBACK("run_async/depth1", CPB_QUICK, 2, run_callback1),
    TASK("run_async/depth2", "launch a chain of two tasks", 0, LEDGER(3, 0, 10, 0, 0, 0, 0, 0), setup_plain,
         run_chain2),
    CALLBACK("run_async/depth2", 0, 4, run_callback2),
    TASK("run_async/depth3", "launch a chain of three tasks", 0, LEDGER(4, 0, 12, 0, 0, 0, 0, 0), setup_plain,
         run_chain3),
    CALLBACK("run_async/depth3", 0, 6, run_callback3),
    TASK("run_async/depth4", "launch a chain of four tasks", CPB_QUICK, LEDGER(5, 0, 14, 0, 0, 0, 0, 0), setup_plain,
         run_chain4),
    CALLBACK("run_async/depth4", CPB_QUICK, 8, run_callback4),
    TASK("strand/depth1", "launch one task on a strand", CPB_QUICK, LEDGER(2, 1, 10, 2, 2, 6, 3, 1), setup_strand,
         run_chain1),
    TASK("strand/depth4", "launch a chain of four tasks on a strand", 0, LEDGER(5, 1, 16, 2, 2, 6, 3, 1), setup_strand,
         run_chain4),
    TASK("switch/executor", "a chain that hops to another executor and back", CPB_QUICK,
         LEDGER(6, 0, 17, 0, 0, 0, 0, 2), setup_plain, run_switching),
    TASK("switch/strand", "a chain that hops to another strand and back", CPB_QUICK, LEDGER(6, 2, 21, 4, 5, 8, 9, 4),
         setup_strand, run_switching),
};

const cpb_suite cpb_suite_coroutine = {
    .name = "coroutine",
    .summary = "start, chain and switch coroutines (Capy bench)",
    .baselines = "task",
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
