/* Suite `primitives`: the unit costs of what the ledger counts, each alone. A pair (lock and unlock, allocate and free,
 * write and read) is one op. Every op is counted by what it did, so that verify can tell that none was skipped. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloc/heap.h"
#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "rt/frame.h"
#include "suites/primitives_bodies.h"
#include "suites/suite.h"

typedef struct primitives_state {
    uint64_t expected;
    uint64_t done;
    uint64_t (*callee)(uint64_t);
    pthread_mutex_t mutex;
    _Atomic(uint64_t) word;
    uint32_t futex;
    int pipe[2];
    bool threaded;
    cpb_parked_thread parked;
} primitives_state;

static int
setup(cpb_run *run)
{
    primitives_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the primitives state");
    state->callee = cpb_launder((void *)cpb_primitive_callee);
    pthread_mutex_init(&state->mutex, NULL);
    state->pipe[0] = -1;
    state->pipe[1] = -1;
    run->state = state;
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    primitives_state *state = run->state;
    if (state->threaded)
        cpb_parked_thread_stop(&state->parked);
    for (int i = 0; i < 2; i++) {
        if (state->pipe[i] >= 0)
            close(state->pipe[i]);
    }
    pthread_mutex_destroy(&state->mutex);
    run->host->release(state);
    cpb_recycling_drain();
}

static int
setup_threaded(cpb_run *run)
{
    int status = setup(run);
    if (status != CPB_OK)
        return status;
    primitives_state *state = run->state;
    if (cpb_parked_thread_start(&state->parked) == CPB_OK) {
        state->threaded = true;
        return CPB_OK;
    }
    teardown(run);
    return run->host->fail(run, CPB_E_SYSTEM, "a thread to park could not be started");
}

static int
setup_pipe(cpb_run *run)
{
    int status = setup(run);
    if (status != CPB_OK)
        return status;
    primitives_state *state = run->state;
    if (pipe2(state->pipe, O_CLOEXEC) == 0)
        return CPB_OK;
    int error = errno;
    teardown(run);
    return run->host->fail(run, CPB_E_SYSTEM, "pipe2 failed with errno %d", error);
}

/* One timed loop: `body` does one op and adds to `done` what proves it. */
#define DEFINE_RUN(name, body)                                                                                         \
    CPB_NOINLINE static int run_##name(cpb_run *run, uint64_t ops)                                                     \
    {                                                                                                                  \
        primitives_state *state = run->state;                                                                          \
        uint64_t done = 0;                                                                                             \
        for (uint64_t i = 0; i < ops; i++) {                                                                           \
            body                                                                                                       \
        }                                                                                                              \
        state->done += done;                                                                                           \
        state->expected += ops;                                                                                        \
        return CPB_OK;                                                                                                 \
    }

DEFINE_RUN(call_direct, done = cpb_primitive_callee(done);)

DEFINE_RUN(call_indirect, done = CPB_INDIRECT(state->callee)(done);)

DEFINE_RUN(frame_recycling, {
    cpb_frame_allocator = cpb_recycling_resource();
    void *frame = cpb_primitive_frame_alloc();
    if (CPB_UNLIKELY(frame == NULL))
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for a frame");
    done++;
    cpb_primitive_frame_free(frame);
})

#define DEFINE_MALLOC(bytes)                                                                                           \
    DEFINE_RUN(malloc_##bytes, {                                                                                       \
        void *memory = cpb_heap_alloc(bytes);                                                                          \
        done += memory != NULL;                                                                                        \
        cpb_heap_free(memory);                                                                                         \
    })
DEFINE_MALLOC(64)
DEFINE_MALLOC(128)
DEFINE_MALLOC(256)

DEFINE_RUN(mutex, {
    cpb_mutex_lock(&state->mutex);
    done++;
    cpb_mutex_unlock(&state->mutex);
})

/* The word holds what the op before put there. */
DEFINE_RUN(exchange, done += cpb_atomic_exchange_acq_rel(&state->word, 1);)

DEFINE_RUN(cas, {
    uint64_t expected = i;
    done += cpb_atomic_cas_acq_rel(&state->word, &expected, i + 1);
})

DEFINE_RUN(store_seq_cst, {
    cpb_atomic_store_seq_cst(&state->word, i);
    done++;
})

/* The clobber makes the compiler read the thread-local anew in every op. */
DEFINE_RUN(tls_read, {
    __asm__ volatile("" : : : "memory");
    cpb_sink((uint64_t)(uintptr_t)cpb_frame_allocator);
    done++;
})

DEFINE_RUN(clock_read, done += cpb_clock_ns() != 0;)

DEFINE_RUN(syscall, {
    CPB_COUNT(CPB_SYSCALLS);
    done += syscall(SYS_getppid) >= 0;
})

DEFINE_RUN(pipe_byte, {
    char byte = 'x';
    CPB_COUNT_N(CPB_SYSCALLS, 2);
    if (write(state->pipe[1], &byte, 1) != 1 || read(state->pipe[0], &byte, 1) != 1)
        return run->host->fail(run, CPB_E_SYSTEM, "the pipe failed with errno %d", errno);
    done++;
})

/* Nobody waits, so each call answers 0 woken threads. */
DEFINE_RUN(futex_wake, {
    CPB_COUNT(CPB_SYSCALLS);
    done += syscall(SYS_futex, &state->futex, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 0;
})

/* exchange and cas are chains: each op proves the one before it, so a run must start from a known word. */
static int
run_exchange_chain(cpb_run *run, uint64_t ops)
{
    primitives_state *state = run->state;
    cpb_atomic_store_relaxed(&state->word, 1);
    return run_exchange(run, ops);
}

static int
run_cas_chain(cpb_run *run, uint64_t ops)
{
    primitives_state *state = run->state;
    cpb_atomic_store_relaxed(&state->word, 0);
    return run_cas(run, ops);
}

static int
verify(cpb_run *run)
{
    const primitives_state *state = run->state;
    if (state->done != state->expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu ops did their work", (unsigned long long)state->done,
                               (unsigned long long)state->expected);
    return CPB_OK;
}

#define CELL(case_name, text, mode, setup_function, run_function, ...)                                                 \
    {                                                                                                                  \
        .suite = "primitives", .name = case_name, .contender = "core", .summary = text, .unit = "ns/op",               \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = mode, .flags = CPB_QUICK,                                     \
        .ledger = &(const cpb_ledger){{__VA_ARGS__}}, .setup = setup_function, .run = run_function, .verify = verify,  \
        .teardown = teardown                                                                                           \
    }

/* Ledger columns: heap, resource, invokers, indirect calls, RMWs, seq_cst stores, refs, mutex pairs, posts, system
 * calls. */
static const cpb_case cells[] = {
    CELL("call_direct", "a call of a function in another unit", CPB_SINGLE, setup, run_call_direct, 0),
    CELL("call_indirect", "the same through a pointer", CPB_SINGLE, setup, run_call_indirect, 0, 0, 0, 1),
    CELL("frame_recycling", "take and free a frame of 96 bytes", CPB_SINGLE, setup, run_frame_recycling, 0, 1),
    CELL("malloc_64", "malloc and free of 64 bytes", CPB_SINGLE, setup, run_malloc_64, 1),
    CELL("malloc_128", "malloc and free of 128 bytes", CPB_SINGLE, setup, run_malloc_128, 1),
    CELL("malloc_256", "malloc and free of 256 bytes", CPB_SINGLE, setup, run_malloc_256, 1),
    CELL("mutex_single", "lock and unlock, process without threads", CPB_SINGLE, setup, run_mutex, 0, 0, 0, 0, 0, 0, 0,
         1),
    CELL("mutex_threaded", "lock and unlock, process with a parked thread", CPB_THREADED, setup_threaded, run_mutex, 0,
         0, 0, 0, 0, 0, 0, 1),
    CELL("exchange", "atomic exchange, acq_rel", CPB_SINGLE, setup, run_exchange_chain, 0, 0, 0, 0, 1),
    CELL("cas", "compare-exchange that succeeds, acq_rel", CPB_SINGLE, setup, run_cas_chain, 0, 0, 0, 0, 1),
    CELL("store_seq_cst", "sequentially consistent store", CPB_SINGLE, setup, run_store_seq_cst, 0, 0, 0, 0, 0, 1),
    CELL("tls_read", "read of an initial-exec thread-local", CPB_SINGLE, setup, run_tls_read, 0),
    CELL("clock_read", "read of the monotonic clock", CPB_SINGLE, setup, run_clock_read, 0),
    CELL("syscall", "getppid, a system call that does nothing", CPB_SINGLE, setup, run_syscall, 0, 0, 0, 0, 0, 0, 0, 0,
         0, 1),
    CELL("pipe_byte", "write and read one byte of a pipe", CPB_SINGLE, setup_pipe, run_pipe_byte, 0, 0, 0, 0, 0, 0, 0,
         0, 0, 2),
    CELL("futex_wake", "FUTEX_WAKE with nobody waiting", CPB_THREADED, setup_threaded, run_futex_wake, 0, 0, 0, 0, 0, 0,
         0, 0, 0, 1),
};

const cpb_suite cpb_suite_primitives = {
    .name = "primitives",
    .summary = "unit costs of what the ledger counts",
    .baselines = "core",
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
