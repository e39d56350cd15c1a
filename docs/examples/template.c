/* A plug-in to start from: one more contender of the core's case primitives/mutex_single.
 *
 *   cc -O2 -fPIC -shared -I"$(python -c 'import capybench; print(capybench.get_include())')" template.c -o mine.so
 *   the same with -DCOUNTING=1 and -o mine_counting.so, for the event counts
 *   capybench verify ./mine.so && capybench run --plugin ./mine.so primitives/mutex_single
 */
#include <pthread.h>

#include "capybench.h"

#ifndef COUNTING
#    define COUNTING 0
#endif

/* What `setup` makes, `run` uses and `teardown` gives back. */
typedef struct state {
    const cpb_host *host;
    pthread_mutex_t mutex;
    uint64_t expected; /* ops that were asked for since setup */
    uint64_t done;     /* ops that took place */
} state;

static int
setup(cpb_run *run)
{
    state *own = run->host->alloc(sizeof *own); /* zeroed, not counted, not timed */
    if (own == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    own->host = run->host;
    pthread_mutex_init(&own->mutex, NULL);
    run->host->note(run, "mutex", "PTHREAD_MUTEX_TIMED_NP"); /* a fact for the result file */
    run->state = own;
    return CPB_OK;
}

/* Exactly `ops` ops. The harness reads the clock around this call; nothing else is timed. */
static int
run_ops(cpb_run *run, uint64_t ops)
{
    state *own = run->state;
    for (uint64_t i = 0; i < ops; i++) {
        pthread_mutex_lock(&own->mutex);
        if (COUNTING)
            own->host->count(CPB_MUTEX_PAIRS, 1);
        own->done++;
        pthread_mutex_unlock(&own->mutex);
    }
    own->expected += ops;
    return CPB_OK;
}

/* Proves the work. A cell whose verify fails has no number. */
static int
verify(cpb_run *run)
{
    const state *own = run->state;
    if (own->done != own->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu pairs were done", (unsigned long long)own->done,
                               (unsigned long long)own->expected);
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    state *own = run->state;
    pthread_mutex_destroy(&own->mutex);
    run->host->release(own);
}

/* Events per op that the counting build must find, in the order of cpb_counter; CPB_ANY promises nothing. */
static const cpb_ledger one_pair = {
    {0, 0, 0, 0, CPB_ANY, 0, 0, 1, 0, 0},
};

static const cpb_case cells[] = {
    {
        .suite = "primitives",
        .name = "mutex_single",
        .contender = "pthread",
        .summary = "lock and unlock a pthread mutex that nobody else wants",
        .unit = "ns/op",
        .direction = CPB_LOWER_IS_BETTER,
        .thread_mode = CPB_SINGLE,
        .ledger = &one_pair,
        .setup = setup,
        .run = run_ops,
        .verify = verify,
        .teardown = teardown,
    },
};

static const cpb_plugin plugin = {
    .abi_version = CPB_ABI_VERSION,
    .struct_size = sizeof(cpb_plugin),
    .name = "mine",
    .version = "0.1",
    .cells = cells,
    .cell_count = sizeof cells / sizeof cells[0],
    .case_size = sizeof(cpb_case),
    .counting = COUNTING,
};

/* The only symbol that is exported. */
__attribute__((visibility("default"))) const cpb_plugin *capybench_plugin_v1(void);

const cpb_plugin *
capybench_plugin_v1(void)
{
    return &plugin;
}
