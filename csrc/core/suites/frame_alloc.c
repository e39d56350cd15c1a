/* Suite `frame_alloc` (specification B): what the allocator of coroutine frames costs. One op is one pass of 66 frames.
 */
#include "alloc/foreign.h"
#include "alloc/std_resource.h"
#include "base/atomic.h"
#include "base/compiler.h"
#include "rt/bench_executor.h"
#include "rt/task.h"
#include "suites/frame_alloc_bodies.h"
#include "suites/suite.h"

typedef struct frame_alloc_state {
    cpb_bench_context context;
    cpb_foreign foreign;
    cpb_stop_token stop;
    cpb_task *(*root)(uint64_t passes);
    uint64_t passes;
    uint64_t launches_done; /* handlers called */
    uint64_t launches;
    uint64_t counter_at_setup;
} frame_alloc_state;

static void
count_launch(void *context, int value)
{
    (void)value;
    ((frame_alloc_state *)context)->launches_done++;
}

static int
setup_with(cpb_run *run, cpb_resource *resource, cpb_task *(*root)(uint64_t))
{
    frame_alloc_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the frame_alloc state");
    state->context.allocator = resource;
    state->root = root;
    state->counter_at_setup = cpb_atomic_load_relaxed(&cpb_frame_alloc_counter);
    run->state = state;
    return CPB_OK;
}

static int
setup_malloc(cpb_run *run)
{
    return setup_with(run, cpb_std_resource(), cpb_frame_alloc_root);
}

static int
setup_recycling(cpb_run *run)
{
    return setup_with(run, cpb_recycling_resource(), cpb_frame_alloc_root);
}

static int
setup_none(cpb_run *run)
{
    return setup_with(run, cpb_recycling_resource(), cpb_frame_alloc_root_embedded);
}

static int
setup_foreign(cpb_run *run, cpb_foreign_kind kind)
{
    int status = setup_with(run, NULL, cpb_frame_alloc_root);
    if (status != CPB_OK)
        return status;
    frame_alloc_state *state = run->state;
    if (cpb_foreign_open(&state->foreign, kind) != CPB_OK) {
        run->host->release(state);
        const char *reason = cpb_foreign_unavailable(kind);
        return run->host->fail(run, CPB_E_UNAVAILABLE, "%s",
                               reason != NULL ? reason : "the library lacks a function that is needed");
    }
    state->context.allocator = &state->foreign.resource;
    run->host->note(run, "allocator", state->foreign.version);
    run->host->note(run, "allocator_path", state->foreign.path);
    return CPB_OK;
}

static int
setup_mimalloc(cpb_run *run)
{
    return setup_foreign(run, CPB_FOREIGN_MIMALLOC);
}

static int
setup_jemalloc(cpb_run *run)
{
    return setup_foreign(run, CPB_FOREIGN_JEMALLOC);
}

static const char *
mimalloc_unavailable(void)
{
    return cpb_foreign_unavailable(CPB_FOREIGN_MIMALLOC);
}

static const char *
jemalloc_unavailable(void)
{
    return cpb_foreign_unavailable(CPB_FOREIGN_JEMALLOC);
}

static int
run_passes(cpb_run *run, uint64_t ops)
{
    frame_alloc_state *state = run->state;
    cpb_launch_params params = {
        .executor = cpb_bench_executor(&state->context),
        .allocator = state->context.allocator,
        .stop = &state->stop,
        .handler = count_launch,
        .context = state,
    };
    cpb_launch launch;
    if (cpb_launch_begin(&launch, &params) != CPB_OK || cpb_launch_start(&launch, state->root(ops)) != CPB_OK)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for a coroutine frame");
    state->launches++;
    state->passes += ops;
    return CPB_OK;
}

static int
verify(cpb_run *run)
{
    const frame_alloc_state *state = run->state;
    uint64_t grown = cpb_atomic_load_relaxed(&cpb_frame_alloc_counter) - state->counter_at_setup;
    uint64_t expected = state->passes * CPB_LEAVES_PER_PASS;
    if (state->launches_done != state->launches)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu root coroutines reached their end",
                               (unsigned long long)state->launches_done, (unsigned long long)state->launches);
    if (grown != expected)
        return run->host->fail(run, CPB_E_FAILED, "the leaves' counter grew by %llu, not by %llu",
                               (unsigned long long)grown, (unsigned long long)expected);
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    frame_alloc_state *state = run->state;
    cpb_foreign_close(&state->foreign);
    run->host->release(state);
    cpb_recycling_drain();
}

/* Indirect calls of a pass, read off the ledger build: each of the 66 frames is started and resumes its parent (132),
 * and unless the allocator is known to be the recycling resource, is allocated and freed through the resource's table
 * (132 more). */
#define LEDGER(heap, resource, calls)                                                                                  \
    (&(const cpb_ledger){{heap, resource, 0, calls, CPB_LEAVES_PER_PASS, 0, 0, 0, 0, 0}})

#define CELL(contender_name, text, expected, setup_function, unavailable_function)                                     \
    {                                                                                                                  \
        .suite = "frame_alloc", .name = "chain66", .contender = contender_name, .summary = text, .unit = "ns/op",      \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_SINGLE, .flags = CPB_QUICK, .ledger = expected,           \
        .unavailable = unavailable_function, .setup = setup_function, .run = run_passes, .verify = verify,             \
        .teardown = teardown                                                                                           \
    }

static const cpb_case cells[] = {
    CELL("malloc", "frames through a std::allocator adapter from malloc", LEDGER(66, 66, 264), setup_malloc, NULL),
    CELL("recycling", "frames from Capy's recycling resource", LEDGER(0, 66, 132), setup_recycling, NULL),
    CELL("mimalloc", "frames through a resource over mimalloc", LEDGER(0, 66, 264), setup_mimalloc,
         mimalloc_unavailable),
    CELL("jemalloc", "frames through a resource over jemalloc", LEDGER(0, 66, 264), setup_jemalloc,
         jemalloc_unavailable),
    CELL("none", "each frame embedded in its caller's: the floor", LEDGER(0, 0, 132), setup_none, NULL),
};

const cpb_suite cpb_suite_frame_alloc = {
    .name = "frame_alloc",
    .summary = "what the allocator of coroutine frames costs (Capy allocation)",
    .baselines = "malloc",
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
