/* Suite `op_alloc` (specification D.6): where the memory of a composed operation comes from. One op is one operation of
 * 5 posts and 5 arrays; no coroutines. */
#include "alloc/foreign.h"
#include "alloc/recycling.h"
#include "alloc/sbo.h"
#include "alloc/std_resource.h"
#include "suites/op_alloc_bodies.h"
#include "suites/suite.h"

/* The one static array that three of the contenders' resources lie over. They hold nothing in it between two runs. */
static _Alignas(16) unsigned char cpb_op_alloc_buffer[CPB_OP_ALLOC_BUFFER];

typedef struct op_alloc_state {
    cpb_op_alloc_bench bench; /* first */
    cpb_monotonic monotonic;
    cpb_pmr_monotonic pmr_monotonic;
    cpb_sbo sbo;
    cpb_foreign foreign;
    uint64_t ops;
} op_alloc_state;

static void
start_first(void *owner, cpb_operation *operation)
{
    cpb_op_alloc_bench *bench = CPB_CONTAINER_OF(operation, cpb_op_alloc_bench, starter);
    if (owner != NULL)
        CPB_INDIRECT(bench->start)(bench);
}

static int
setup_with(cpb_run *run, cpb_op_alloc_start start)
{
    op_alloc_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the op_alloc state");
    cpb_scheduler_init(&state->bench.scheduler);
    state->bench.executor = cpb_scheduler_executor(&state->bench.scheduler);
    state->bench.starter.complete = start_first;
    state->bench.start = start;
    state->bench.monotonic = &state->monotonic;
    cpb_monotonic_init(&state->monotonic, cpb_op_alloc_buffer, sizeof cpb_op_alloc_buffer);
    cpb_pmr_monotonic_init(&state->pmr_monotonic, cpb_op_alloc_buffer, sizeof cpb_op_alloc_buffer, cpb_std_resource());
    cpb_sbo_init(&state->sbo, cpb_op_alloc_buffer, sizeof cpb_op_alloc_buffer, cpb_std_resource());
    run->state = state;
    return CPB_OK;
}

static int
setup_malloc(cpb_run *run)
{
    return setup_with(run, cpb_op_alloc_malloc);
}

static int
setup_monotonic(cpb_run *run)
{
    return setup_with(run, cpb_op_alloc_monotonic);
}

static int
setup_recycling(cpb_run *run)
{
    return setup_with(run, cpb_op_alloc_recycling);
}

static int
setup_pmr_monotonic(cpb_run *run)
{
    int status = setup_with(run, cpb_op_alloc_pmr_monotonic);
    if (status == CPB_OK) {
        op_alloc_state *state = run->state;
        state->bench.resource = cpb_launder(&state->pmr_monotonic.resource);
    }
    return status;
}

static int
setup_sbo(cpb_run *run)
{
    int status = setup_with(run, cpb_op_alloc_sbo);
    if (status == CPB_OK) {
        op_alloc_state *state = run->state;
        state->bench.resource = cpb_launder(&state->sbo.resource);
    }
    return status;
}

static void
teardown(cpb_run *run)
{
    op_alloc_state *state = run->state;
    cpb_scheduler_destroy(&state->bench.scheduler);
    cpb_monotonic_release(&state->monotonic);
    cpb_pmr_monotonic_release(&state->pmr_monotonic);
    cpb_foreign_close(&state->foreign);
    run->host->release(state);
    cpb_recycling_drain();
}

static const char *
mimalloc_unavailable(void)
{
    return cpb_foreign_unavailable(CPB_FOREIGN_MIMALLOC);
}

static int
setup_mimalloc(cpb_run *run)
{
    int status = setup_with(run, cpb_op_alloc_mimalloc);
    if (status != CPB_OK)
        return status;
    op_alloc_state *state = run->state;
    if (cpb_foreign_open(&state->foreign, CPB_FOREIGN_MIMALLOC) != CPB_OK) {
        teardown(run);
        const char *reason = mimalloc_unavailable();
        return run->host->fail(run, CPB_E_UNAVAILABLE, "%s",
                               reason != NULL ? reason : "the library lacks a function that is needed");
    }
    state->bench.resource = &state->foreign.resource;
    run->host->note(run, "allocator", state->foreign.version);
    run->host->note(run, "allocator_path", state->foreign.path);
    return CPB_OK;
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    op_alloc_state *state = run->state;
    if (state->bench.scheduler.failure != CPB_OK)
        return run->host->fail(run, CPB_E_FAILED, "an earlier run was not finished");
    state->bench.left = ops;
    state->ops += ops;
    cpb_any_post(&state->bench.executor, &state->bench.starter);
    int status = cpb_scheduler_run(&state->bench.scheduler);
    if (status != CPB_OK)
        return run->host->fail(run, status, "no memory for a posted operation or an array");
    return CPB_OK;
}

static int
verify_equal(cpb_run *run, const char *what, uint64_t found, uint64_t expected)
{
    if (found == expected)
        return CPB_OK;
    return run->host->fail(run, CPB_E_FAILED, "%llu %s, not %llu", (unsigned long long)found, what,
                           (unsigned long long)expected);
}

static int
verify(cpb_run *run)
{
    const op_alloc_state *state = run->state;
    const cpb_op_alloc_bench *bench = &state->bench;
    int status = verify_equal(run, "operations completed", bench->completed, state->ops);
    if (status == CPB_OK)
        status = verify_equal(run, "operations started", bench->started, state->ops);
    if (status == CPB_OK)
        status = verify_equal(run, "posts were done", bench->posts, state->ops * CPB_OP_ALLOC_POSTS);
    if (status == CPB_OK)
        status = verify_equal(run, "arrays were made", bench->arrays_made, state->ops * CPB_OP_ALLOC_POSTS);
    if (status == CPB_OK)
        status = verify_equal(run, "arrays were dropped", bench->arrays_dropped, bench->arrays_made);
    if (status == CPB_OK)
        status = verify_equal(run, "arrays were not filled with zeros", bench->not_zero, 0);
    if (status == CPB_OK)
        status = verify_equal(run, "bytes of the small buffer are free", state->sbo.available, state->sbo.size);
    return status;
}

/* Read off the ledger build, per op: 5 posts, each with its two work counts and two indirect calls (post, operation).
 * An array's end changes its reference count and makes two calls (dispose, destroy), but for the two that the monotonic
 * contenders must not touch. A table costs a call for each of 10 requests and 10 returns; pmr_monotonic has a chunk
 * from its upstream on top. */
#define LEDGER(heap, resource, calls, refs)                                                                            \
    (&(const cpb_ledger){                                                                                              \
        {heap, resource, 0, calls, 2 * CPB_OP_ALLOC_POSTS, 0, refs, CPB_OP_ALLOC_POSTS, CPB_OP_ALLOC_POSTS, 0}})

#define CELL(contender_name, text, expected, unavailable_function)                                                     \
    {                                                                                                                  \
        .suite = "op_alloc", .name = "composed5", .contender = #contender_name, .summary = text, .unit = "ns/op",      \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_SINGLE, .flags = CPB_QUICK, .ledger = expected,           \
        .unavailable = unavailable_function, .setup = setup_##contender_name, .run = run_ops, .verify = verify,        \
        .teardown = teardown                                                                                           \
    }

static const cpb_case cells[] = {
    CELL(malloc, "operations from the thread's cache, arrays from malloc", LEDGER(5, 0, 20, 5), NULL),
    CELL(monotonic, "Cobalt's monotonic buffer, released by every handler", LEDGER(2, 10, 16, 3), NULL),
    CELL(pmr_monotonic, "std::pmr's monotonic buffer, released by every handler", LEDGER(1, 10, 38, 3), NULL),
    CELL(sbo, "Cobalt's small-buffer resource, never released", LEDGER(0, 10, 40, 5), NULL),
    CELL(recycling, "Capy's recycling resource", LEDGER(0, 10, 20, 5), NULL),
    CELL(mimalloc, "a resource over mimalloc", LEDGER(0, 10, 40, 5), mimalloc_unavailable),
};

const cpb_suite cpb_suite_op_alloc = {
    .name = "op_alloc",
    .summary = "where the memory of a composed operation comes from (Cobalt)",
    .baselines = "malloc",
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
