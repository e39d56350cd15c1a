/* capybench.h: the case contract, and the ABI of plug-ins.
 *
 * Built-in suites and foreign shared objects describe their work with the same structures: const descriptors whose
 * functions the harness calls in a fixed order. Nothing here needs a library; what a plug-in wants from the core it
 * gets through the cpb_host table on the run object.
 *
 * Words: a *case* is one workload of a *suite*; a *contender* implements a case; suite, case and contender together
 * name a *cell*, written suite/case@contender. An *op* is the unit of work that a case counts. A *sample* is one timed
 * call of `run`.
 *
 * Order of calls for a cell, all on one thread:  unavailable?  setup  (run verify)*  teardown.
 */
#ifndef CAPYBENCH_H
#define CAPYBENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a structure below changes its meaning. Appending a field at the end of cpb_host or cpb_case raises only
 * the struct size that each table carries in its second field. */
#define CPB_ABI_VERSION 1u

/* Status of everything that can fail. X(name, value, text). */
#define CPB_STATUS_LIST(X)                                                                                             \
    X(CPB_OK, 0, "ok")                                                                                                 \
    X(CPB_E_FAILED, 1, "the work was not done as specified")                                                           \
    X(CPB_E_NO_MEMORY, 2, "out of memory")                                                                             \
    X(CPB_E_SYSTEM, 3, "a system call failed")                                                                         \
    X(CPB_E_UNAVAILABLE, 4, "cannot run here")                                                                         \
    X(CPB_E_INVALID, 5, "the conditions of the case are not met")                                                      \
    X(CPB_E_NOT_FOUND, 6, "no such cell")                                                                              \
    X(CPB_E_ARGUMENT, 7, "bad argument")                                                                               \
    X(CPB_E_ABI, 8, "another ABI version")

typedef enum cpb_status {
#define CPB_STATUS_ENUM(name, value, text) name = value,
    CPB_STATUS_LIST(CPB_STATUS_ENUM)
#undef CPB_STATUS_ENUM
} cpb_status;

/* What is counted. The first ten are the ledger; the rest explain single suites. X(enumerator, key). */
#define CPB_COUNTER_LIST(X)                                                                                            \
    X(CPB_HEAP_ALLOCS, "heap_allocs")         /* calls of the C library's allocator (malloc and kin) */                \
    X(CPB_RESOURCE_ALLOCS, "resource_allocs") /* calls of a memory resource's allocate */                              \
    X(CPB_INVOKER_FRAMES, "invoker_frames")   /* strand invoker frames started */                                      \
    X(CPB_INDIRECT_CALLS, "indirect_calls")   /* calls through a function pointer or a table */                        \
    X(CPB_ATOMIC_RMWS, "atomic_rmws")         /* read-modify-writes: exchange, compare-exchange, fetch-add */          \
    X(CPB_SEQ_CST_STORES, "seq_cst_stores")   /* sequentially consistent stores */                                     \
    X(CPB_REF_CHANGES, "ref_changes")         /* reference count changes that are plain while single-threaded */       \
    X(CPB_MUTEX_PAIRS, "mutex_pairs")         /* lock and unlock */                                                    \
    X(CPB_POSTS, "posts")                     /* calls of an executor's post, inline ones too */                       \
    X(CPB_SYSCALLS, "syscalls")               /* system calls, where a suite counts them */                            \
    X(CPB_RESOURCE_FREES, "resource_frees")   /* calls of a memory resource's deallocate */                            \
    X(CPB_HEAP_BYTES, "heap_bytes")           /* bytes asked of the C library's allocator */                           \
    X(CPB_FIFO_PUSHES, "fifo_pushes")         /* continuations queued in a strand */                                   \
    X(CPB_UPSTREAM_ALLOCS, "upstream_allocs") /* requests a buffer resource passed on */                               \
    X(CPB_COUNTED_ALLOCS, "counted_allocs")   /* allocations that a published workload itself counts */                \
    X(CPB_READS, "reads")                     /* read system calls (read, recv, or their ring entries) */              \
    X(CPB_WRITES, "writes")                   /* write system calls */                                                 \
    X(CPB_POLLS, "polls")                     /* readiness polls or ring enters */                                     \
    X(CPB_THREADS_STARTED, "threads_started") /* threads created */                                                    \
    X(CPB_SPAWNS, "spawns")                   /* child processes started */                                            \
    X(CPB_FRAGMENTATIONS, "fragmentations")   /* times that a buffer resource became fragmented */

typedef enum cpb_counter {
#define CPB_COUNTER_ENUM(name, key) name,
    CPB_COUNTER_LIST(CPB_COUNTER_ENUM)
#undef CPB_COUNTER_ENUM
        CPB_COUNTER_COUNT
} cpb_counter;

/* How many of the counters above belong to the ledger that a descriptor may promise. */
#define CPB_LEDGER_COUNT 10

/* Expected events per op, in the order of cpb_counter; a value of CPB_ANY says that the specification gives none. */
#define CPB_ANY (-1)
typedef struct cpb_ledger {
    int64_t per_op[CPB_LEDGER_COUNT];
} cpb_ledger;

typedef enum cpb_direction { CPB_LOWER_IS_BETTER = 0, CPB_HIGHER_IS_BETTER = 1 } cpb_direction;

/* Thread modes. glibc switches its single-thread fast paths off for good at the first pthread_create. */
typedef enum cpb_thread_mode {
    CPB_SINGLE = 0,  /* the process must never have created a thread */
    CPB_THREADED = 1 /* the process has created a thread by the time `run` is called */
} cpb_thread_mode;

/* Bits of cpb_case.flags. */
#define CPB_QUICK 1u  /* part of the default quick run */
#define CPB_PYTHON 2u /* measured by Python itself; has no run function */

typedef struct cpb_run cpb_run;

/* What the core offers to a case. */
typedef struct cpb_host {
    uint32_t abi_version; /* CPB_ABI_VERSION of the core */
    uint32_t struct_size; /* sizeof(cpb_host) in the core: test it before using a field appended later */

    /* Memory for a case's own state: zeroed; NULL when there is none. Not counted. `release` accepts NULL. */
    void *(*alloc)(size_t size);
    void (*release)(void *memory);

    /* Records why a call fails, in printf form (one sentence), and returns `status`, so that `return fail(...)` works.
     * The first reason of a run is kept. */
    int (*fail)(cpb_run *run, int status, const char *format, ...)
#if defined(__GNUC__)
        __attribute__((format(printf, 3, 4)))
#endif
        ;

    /* Adds to a counter; does nothing in the measured build, so a plug-in may call it where its own build counts. */
    void (*count)(cpb_counter counter, uint64_t events);

    /* Stores a fact about the run for the result file, e.g. ("allocator", "mimalloc 2.0.9"). Both strings are copied.
     */
    void (*note)(cpb_run *run, const char *key, const char *value);

    /* Takes one sample of `body(context, ops)` exactly as the harness does and returns its ns. */
    uint64_t (*sample)(int (*body)(void *context, uint64_t ops), void *context, uint64_t ops);
} cpb_host;

typedef struct cpb_case cpb_case;

/* One cell being run. Owned by the harness. */
struct cpb_run {
    uint32_t abi_version;
    uint32_t struct_size;
    const cpb_host *host;
    const cpb_case *cell;
    void *state; /* the case's own: stored by setup, given back by teardown */

    /* A case whose metric is the mean of intervals that it timed itself stores their sum here in `run`; 0 leaves the
     * harness's clock around `run` in force. */
    uint64_t reported_ns;
};

/* A cell. Const data; strings are static. Functions return a cpb_status. */
struct cpb_case {
    const char *suite;
    const char *name;      /* the case, with its arguments: "pingpong/64" */
    const char *contender; /* "task" */
    const char *summary;   /* one line */
    const char *unit;      /* "ns/op", "ops/s", "items/s" or "bytes/s" */
    uint32_t direction;    /* cpb_direction */
    uint32_t thread_mode;  /* cpb_thread_mode */
    uint32_t flags;        /* CPB_QUICK | CPB_PYTHON */
    uint32_t cpus;         /* CPUs a worker is pinned to; 0 means 1. The same for all contenders of a case. */
    uint64_t step;         /* ops come in multiples of this; 0 means 1 */
    uint64_t bytes_per_op; /* for "bytes/s" */
    const cpb_ledger *ledger;

    /* NULL, or a function that answers NULL (can run) or a static sentence why it cannot run here. */
    const char *(*unavailable)(void);

    /* Prepares everything that is not the work: memory, threads, sockets. On failure gives back what it took. */
    int (*setup)(cpb_run *run);
    /* Performs exactly `ops` ops, or fails. The harness reads the clock around it. */
    int (*run)(cpb_run *run, uint64_t ops);
    /* Proves that all ops since setup were done, by sums, bytes or counts. */
    int (*verify)(cpb_run *run);
    /* Gives everything back. Called once after a successful setup. */
    void (*teardown)(cpb_run *run);
    /* Optional: performs `ops` ops and stores each one's latency in ns in `ns[0 .. ops-1]`. */
    int (*latency)(cpb_run *run, uint64_t ops, uint64_t *ns);
};

/* A suite of the core: a table of cells and how to present it. */
typedef struct cpb_suite {
    const char *name;
    const char *summary;
    const char *baselines; /* contenders separated by blanks; the first one present in a case is its baseline */
    const cpb_case *cells;
    size_t cell_count;
} cpb_suite;

/* What a plug-in exports:  const cpb_plugin *capybench_plugin_v1(void);
 * The two version fields are checked before anything else is read. */
typedef struct cpb_plugin {
    uint32_t abi_version; /* CPB_ABI_VERSION the plug-in was built with */
    uint32_t struct_size; /* sizeof(cpb_plugin) */
    const char *name;
    const char *version;
    const cpb_case *cells;
    size_t cell_count;
    uint32_t case_size; /* sizeof(cpb_case) */
    uint32_t counting;  /* 1 when this build calls host->count */
} cpb_plugin;

#define CPB_PLUGIN_ENTRY "capybench_plugin_v1"
typedef const cpb_plugin *(*cpb_plugin_entry)(void);

#ifdef __cplusplus
}
#endif

#endif
