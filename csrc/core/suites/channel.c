/* Suite `channel` (specification D): posts, channels and gathers on a single-threaded scheduler. */
#include "base/compiler.h"
#include "rt/frame.h"
#include "suites/channel_parts.h"
#include "suites/suite.h"

/* The coroutines are spawned on the scheduler's thread. */
static void
start_all(void *owner, cpb_operation *operation)
{
    cpb_channel_bench *bench = CPB_CONTAINER_OF(operation, cpb_channel_bench, starter);
    if (owner != NULL && !CPB_INDIRECT(bench->start)(bench, bench->ops_to_start))
        cpb_scheduler_fail(&bench->scheduler, CPB_E_NO_MEMORY);
}

/* As many of the case's ops as the run wants; a capacity of the generic channels goes with the case. */
static int
setup_with(cpb_run *run, const cpb_channel_model *model, cpb_channel_start start, size_t capacity)
{
    cpb_channel_bench *bench = run->host->alloc(sizeof *bench);
    if (bench == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the channel state");
    cpb_scheduler_init(&bench->scheduler);
    bench->executor = cpb_scheduler_executor(&bench->scheduler);
    cpb_size_pool_init(&bench->pool);
    for (unsigned i = 0; i < 2; i++) {
        cpb_channel_init(&bench->channels[i], capacity, bench->executor);
        cpb_direct_channel_init(&bench->direct[i], 0, bench->executor);
    }
    bench->model = model;
    bench->start = start;
    bench->starter.complete = start_all;
    run->state = bench;
    return CPB_OK;
}

static int
run_ops(cpb_run *run, uint64_t ops)
{
    cpb_channel_bench *bench = run->state;
    if (bench->scheduler.failure != CPB_OK || bench->roots[0] != NULL || bench->roots[1] != NULL)
        return run->host->fail(run, CPB_E_FAILED, "an earlier run was not finished");
    cpb_resource *saved = cpb_frame_allocator;
    cpb_frame_allocator = &bench->pool.resource; /* the thread's default memory resource */
    bench->ops_to_start = ops;
    bench->ops += ops;
    cpb_any_post(&bench->executor, &bench->starter);
    int status = cpb_scheduler_run(&bench->scheduler);
    cpb_frame_allocator = saved;
    if (status == CPB_E_NO_MEMORY)
        return run->host->fail(run, status, "no memory for a coroutine, an operation or a handler");
    if (status != CPB_OK)
        return run->host->fail(run, status, "the coroutines wait for each other after %llu of %llu ops",
                               (unsigned long long)bench->done, (unsigned long long)bench->ops);
    return CPB_OK;
}

static int
verify(cpb_run *run)
{
    const cpb_channel_bench *bench = run->state;
    if (bench->done != bench->ops)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu ops reached their end", (unsigned long long)bench->done,
                               (unsigned long long)bench->ops);
    if (bench->failures != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu operations completed with an error",
                               (unsigned long long)bench->failures);
    if (bench->sent != bench->received)
        return run->host->fail(run, CPB_E_FAILED, "the values received sum to %llu, those sent to %llu",
                               (unsigned long long)bench->received, (unsigned long long)bench->sent);
    for (unsigned i = 0; i < 2; i++) {
        if (bench->channels[i].count != 0 || bench->channels[i].head != NULL)
            return run->host->fail(run, CPB_E_FAILED, "channel %u is not empty", i);
    }
    return CPB_OK;
}

static void
destroy_roots(cpb_channel_bench *bench)
{
    for (unsigned i = 0; i < CPB_CHANNEL_ROOTS; i++) {
        if (bench->roots[i] != NULL)
            bench->model->destroy(bench->roots[i]);
    }
}

static void
teardown(cpb_run *run)
{
    cpb_channel_bench *bench = run->state;
    if (!bench->model->roots_last)
        destroy_roots(bench);
    cpb_channel_destroy(&bench->channels[0]);
    cpb_channel_destroy(&bench->channels[1]);
    cpb_scheduler_destroy(&bench->scheduler);
    if (bench->model->roots_last)
        destroy_roots(bench);
    cpb_size_pool_destroy(&bench->pool);
    run->host->release(bench);
}

#define DEFINE_SETUP(case_name, contender, capacity)                                                                   \
    static int setup_##contender##_##case_name(cpb_run *run)                                                           \
    {                                                                                                                  \
        return setup_with(run, &cpb_channel_##contender##_model, cpb_channel_##contender##_##case_name, capacity);     \
    }

#define DEFINE_SETUPS(contender)                                                                                       \
    DEFINE_SETUP(post, contender, 0)                                                                                   \
    DEFINE_SETUP(parallel, contender, 0)                                                                               \
    DEFINE_SETUP(immediate, contender, 1)                                                                              \
    DEFINE_SETUP(channel, contender, 0)                                                                                \
    DEFINE_SETUP(pingpong, contender, 0)

DEFINE_SETUPS(task)
DEFINE_SETUPS(awaitable)

/* Read off the ledger build, per op.
 *
 * Work count: a post counts its operation as outstanding work and its end gives that back, 2 read-modify-writes; a
 * generic channel's operation tracks work from start to end, 2 more; awaitable/parallel's two entries have two work
 * guards each (8), and a parallel group counts completions down and up (4). Reference changes are those of the group's
 * shared state: made with one, one more for each operation and given up three times.
 *
 * Heap, beside the specification's tables: Asio's cache keeps two blocks a purpose, so the third and fourth live
 * cancellation handler of parallel come from malloc, as do three frames of awaitable/parallel.
 *
 * Indirect calls. post/task 7: ready, initiate, the buffer's allocate and deallocate, the executor's post, the
 * operation, the coroutine. post/awaitable 6: child, what it leaves to be done, post, operation, parent, the child's
 * destruction. channel/task 10: two ramps, the first fork's second start, two cancellation handlers' ends, the reader's
 * post and operation, writer, reader, parent. immediate/task 14: for send and receive each ready, initiate, allocate,
 * deallocate, the operation, and its tracked work begun and ended. */
#define LEDGER(heap, resource, calls, rmws, refs, mutexes, posts)                                                      \
    (&(const cpb_ledger){{heap, resource, 0, calls, rmws, 0, refs, mutexes, posts, 0}})

#define CELL(case_name, contender_name, text, cell_flags, expected)                                                    \
    {                                                                                                                  \
        .suite = "channel", .name = #case_name, .contender = #contender_name, .summary = text, .unit = "ns/op",        \
        .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_SINGLE, .flags = cell_flags, .ledger = expected,          \
        .setup = setup_##contender_name##_##case_name, .run = run_ops, .verify = verify, .teardown = teardown          \
    }

static const cpb_case cells[] = {
    CELL(post, task, "await a post, its operation in the awaitable's buffer", CPB_QUICK, LEDGER(0, 1, 7, 2, 0, 1, 1)),
    CELL(post, awaitable, "await a post, frame and operation from the thread's cache", CPB_QUICK,
         LEDGER(0, 0, 6, 2, 0, 1, 1)),
    CELL(parallel, task, "gather of a send and a receive task", CPB_QUICK, LEDGER(2, 8, 40, 8, 0, 2, 2)),
    CELL(parallel, awaitable, "operator && of a send and a receive, both spawned", CPB_QUICK,
         LEDGER(7, 0, 49, 20, 5, 2, 2)),
    CELL(immediate, task, "a send and a receive completed inside their initiation", CPB_QUICK,
         LEDGER(0, 2, 14, 4, 0, 0, 0)),
    CELL(immediate, awaitable, "a send and a receive completed by a post each", CPB_QUICK,
         LEDGER(0, 0, 18, 8, 0, 2, 2)),
    CELL(channel, task, "gather of a write and a read on the lean channel", CPB_QUICK, LEDGER(0, 2, 10, 2, 0, 1, 1)),
    CELL(channel, awaitable, "parallel group of a send and a receive", CPB_QUICK, LEDGER(0, 0, 15, 12, 5, 2, 2)),
    CELL(pingpong, task, "a round trip of two coroutines over two lean channels", 0, LEDGER(0, 0, 8, 4, 0, 2, 2)),
    CELL(pingpong, awaitable, "a round trip of two coroutines over two channels", 0, LEDGER(0, 0, 36, 16, 0, 4, 4)),
};

const cpb_suite cpb_suite_channel = {
    .name = "channel",
    .summary = "what posts, channels and gathers cost (Cobalt)",
    .baselines = "task",
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
