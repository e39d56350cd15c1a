/* Suite `noop`: what the harness itself costs, an op and a sample. */
#include "base/compiler.h"
#include "suites/suite.h"

typedef struct noop_state {
    uint64_t expected;
    uint64_t done;
} noop_state;

static int
setup(cpb_run *run)
{
    run->state = run->host->alloc(sizeof(noop_state));
    if (run->state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the noop state");
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    run->host->release(run->state);
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    noop_state *state = run->state;
    uint64_t done = 0;
    /* The counter passes through an empty asm, so that the compiler cannot take the loop as done. */
    while (done < ops) {
        done++;
        __asm__ volatile("" : "+r"(done));
    }
    state->done += done;
    state->expected += ops;
    return CPB_OK;
}

static int
count_sample(void *context, uint64_t ops)
{
    ((noop_state *)context)->done += ops;
    return CPB_OK;
}

static int
run_samples(cpb_run *run, uint64_t ops)
{
    noop_state *state = run->state;
    for (uint64_t i = 0; i < ops; i++)
        cpb_sink(run->host->sample(count_sample, state, 1));
    state->expected += ops;
    return CPB_OK;
}

static int
verify(cpb_run *run)
{
    const noop_state *state = run->state;
    if (state->done != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu ops were done", (unsigned long long)state->done,
                               (unsigned long long)state->expected);
    return CPB_OK;
}

#define CELL(case_name, text, run_function)                                                                            \
    {                                                                                                                  \
        .suite = "noop", .name = case_name, .contender = "core", .summary = text, .unit = "ns/op",                     \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_SINGLE, .flags = CPB_QUICK, .setup = setup,               \
        .run = run_function, .verify = verify, .teardown = teardown                                                    \
    }

static const cpb_case cells[] = {
    CELL("op", "an op that does nothing", run_ops),
    CELL("sample", "a sample of one op that does nothing", run_samples),
};

const cpb_suite cpb_suite_noop = {
    .name = "noop",
    .summary = "what the harness itself costs",
    .baselines = "core",
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
