/* Plug-ins for tests, one a macro VARIANT_<name>: `good`, those that must be refused, and `bad`, whose cells misbehave
 * when they run. Built with nothing but capybench.h, as a stranger's would be. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capybench.h"

#ifndef COUNTING
#    define COUNTING 0
#endif

typedef struct state {
    uint64_t expected;
    uint64_t done;
} state;

static int
setup(cpb_run *run)
{
    run->state = run->host->alloc(sizeof(state));
    if (run->state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the state");
    return CPB_OK;
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    state *own = run->state;
    for (uint64_t i = 0; i < ops; i++) {
        void *volatile memory = malloc(24);
        if (memory == NULL)
            return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for op %llu", (unsigned long long)i);
        if (COUNTING)
            run->host->count(CPB_HEAP_ALLOCS, 1);
        free(memory);
        own->done++;
    }
    own->expected += ops;
    return CPB_OK;
}

static int
verify(cpb_run *run)
{
    const state *own = run->state;
    if (own->done != own->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu ops were done", (unsigned long long)own->done,
                               (unsigned long long)own->expected);
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    run->host->release(run->state);
}

#define LEDGER(allocs)                                                                                                 \
    {                                                                                                                  \
        {                                                                                                              \
            allocs, 0, 0, 0, 0, 0, 0, 0, 0, 0                                                                          \
        }                                                                                                              \
    }
__attribute__((unused)) static const cpb_ledger one_alloc = LEDGER(1);

#define BASE(suite_name, case_name, contender_name)                                                                    \
    .suite = suite_name, .name = case_name, .contender = contender_name, .summary = "a malloc and a free",             \
    .unit = "ns/op", .thread_mode = CPB_SINGLE, .setup = setup, .run = run_ops, .verify = verify, .teardown = teardown

#if defined(VARIANT_bad)
static const cpb_ledger two_allocs = LEDGER(2);

static int
crash(cpb_run *run)
{
    (void)run;
    return raise(SIGSEGV);
}

static int
crash_run(cpb_run *run, uint64_t ops)
{
    (void)ops;
    return crash(run);
}

static int
run_half(cpb_run *run, uint64_t ops)
{
    ((state *)run->state)->done += ops / 2;
    ((state *)run->state)->expected += ops;
    return CPB_OK;
}

/* Right for one op, wrong for more: only several op counts find it. */
static int
run_one(cpb_run *run, uint64_t ops)
{
    ((state *)run->state)->done += 1;
    ((state *)run->state)->expected += ops;
    return CPB_OK;
}

static int
setup_once(cpb_run *run)
{
    static int times;
    if (times++ > 0)
        return run->host->fail(run, CPB_E_FAILED, "set up before");
    return setup(run);
}

static void
keep_state(cpb_run *run)
{
    (void)run;
}

static int
open_null(cpb_run *run)
{
    if (open("/dev/null", O_RDONLY) < 0)
        return run->host->fail(run, CPB_E_SYSTEM, "/dev/null does not open");
    return setup(run);
}

static void *
wait_forever(void *unused)
{
    for (;;)
        pause();
    return unused;
}

static int
start_thread(cpb_run *run)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_forever, NULL) != 0)
        return run->host->fail(run, CPB_E_SYSTEM, "no thread");
    return setup(run);
}

static void *
end_at_once(void *unused)
{
    return unused;
}

static int
join_thread(cpb_run *run)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, end_at_once, NULL) != 0)
        return run->host->fail(run, CPB_E_SYSTEM, "no thread");
    pthread_join(thread, NULL);
    return setup(run);
}

static int
start_child(cpb_run *run)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    if (child < 0)
        return run->host->fail(run, CPB_E_SYSTEM, "no child");
    return setup(run);
}

static int
fail_oddly(cpb_run *run)
{
    return run->host->fail(run, CPB_E_FAILED, "no \xff\xfe text");
}

static const char *
nowhere(void)
{
    return "there is no such thing anywhere";
}

static const cpb_case cells[] = {
    {BASE("bad", "good", "it")},
    {BASE("bad", "crash_setup", "it"), .setup = crash},
    {BASE("bad", "crash_run", "it"), .run = crash_run},
    {BASE("bad", "half", "it"), .run = run_half},
    {BASE("bad", "one", "it"), .run = run_one},
    {BASE("bad", "setup_once", "it"), .setup = setup_once},
    {BASE("bad", "leak_heap", "it"), .teardown = keep_state},
    {BASE("bad", "leak_descriptor", "it"), .setup = open_null},
    {BASE("bad", "leak_thread", "it"), .setup = start_thread, .thread_mode = CPB_THREADED},
    {BASE("bad", "leak_child", "it"), .setup = start_child},
    {BASE("bad", "joined_thread", "it"), .setup = join_thread, .thread_mode = CPB_THREADED},
    {BASE("bad", "hidden_thread", "it"), .setup = join_thread},
    {BASE("bad", "odd_text", "it"), .setup = fail_oddly},
    {BASE("bad", "wrong_ledger", "it"), .ledger = &two_allocs},
    {BASE("bad", "nowhere", "it"), .unavailable = nowhere},
};
#elif defined(VARIANT_null_run)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .run = NULL}};
#elif defined(VARIANT_null_teardown)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .teardown = NULL}};
#elif defined(VARIANT_null_summary)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .summary = NULL}};
#elif defined(VARIANT_odd_summary)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .summary = "a \xff summary"}};
#elif defined(VARIANT_null_suite)
static const cpb_case cells[] = {{BASE(NULL, "y", "z")}};
#elif defined(VARIANT_odd_name)
static const cpb_case cells[] = {{BASE("x", "y/../[z]", "z")}};
#elif defined(VARIANT_odd_contender)
static const cpb_case cells[] = {{BASE("x", "y", "z@w")}};
#elif defined(VARIANT_odd_unit)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .unit = "furlongs"}};
#elif defined(VARIANT_odd_direction)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .direction = 7}};
#elif defined(VARIANT_odd_mode)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .thread_mode = 7}};
#elif defined(VARIANT_odd_flags)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .flags = CPB_PYTHON}};
#elif defined(VARIANT_no_bytes)
static const cpb_case cells[] = {{BASE("x", "y", "z"), .unit = "bytes/s", .direction = CPB_HIGHER_IS_BETTER}};
#elif defined(VARIANT_duplicate)
static const cpb_case cells[] = {{BASE("noop", "op", "core")}};
#elif defined(VARIANT_twice)
static const cpb_case cells[] = {{BASE("x", "y", "z")}, {BASE("x", "y", "z")}};
#elif defined(VARIANT_other_unit)
static const cpb_case cells[] = {
    {BASE("noop", "op", "other"), .unit = "ops/s", .direction = CPB_HIGHER_IS_BETTER},
};
#elif defined(VARIANT_rival)
static const cpb_case cells[] = {{BASE("extra", "malloc", "libc")}};
#else
static const cpb_case cells[] = {
    {BASE("noop", "op", "malloc"), .ledger = &one_alloc, .flags = CPB_QUICK},
    {BASE("extra", "malloc", "libc"), .ledger = &one_alloc},
};
#endif

#ifndef NAME
#    define NAME "good"
#endif

static const cpb_plugin table = {
    .abi_version = CPB_ABI_VERSION,
    .struct_size = sizeof(cpb_plugin),
    .name = NAME,
    .version = "1.2",
    .cells = cells,
    .cell_count = sizeof cells / sizeof cells[0],
    .case_size = sizeof(cpb_case),
    .counting = COUNTING,
};

#if defined(VARIANT_no_entry)
#    define ENTRY somebody_elses_function
#else
#    define ENTRY capybench_plugin_v1
#endif

__attribute__((visibility("default"))) const cpb_plugin *ENTRY(void);

const cpb_plugin *
ENTRY(void)
{
    static cpb_plugin changed;
    changed = table;
#if defined(VARIANT_wrong_abi)
    changed.abi_version = 99;
    changed.name = (const char *)(uintptr_t)16; /* reading it would be a crash */
#elif defined(VARIANT_wrong_size)
    changed.struct_size = 24;
    changed.name = (const char *)(uintptr_t)16;
#elif defined(VARIANT_wrong_case_size)
    changed.case_size = 8;
    changed.cells = (const cpb_case *)(uintptr_t)16;
#elif defined(VARIANT_null_table)
    return NULL;
#elif defined(VARIANT_null_name)
    changed.name = NULL;
#elif defined(VARIANT_odd_version)
    changed.version = "1\n2";
#elif defined(VARIANT_no_cells)
    changed.cell_count = 0;
#elif defined(VARIANT_crash_entry)
    raise(SIGSEGV);
#endif
    return &changed;
}
