/* Suite `read_stream` (specification C): three models, four kinds of stream, bridges both ways, two protocol families.
 * One op is one read; a session is a coroutine of 10,000 reads. The cells are rows of four stream kinds; a row's index
 * names its consumer. */
#include "alloc/counting.h"
#include "base/compiler.h"
#include "rt/bench_executor.h"
#include "suites/read_stream_parts.h"
#include "suites/suite.h"

/* How the work gets to the pool: launched there, launched here (Capy's adapter hands the frame straight back, so that
 * the task begins on the main thread and moves with its first read), started by a work item as starts_on does, or a
 * pipeline. */
typedef enum mode { LAUNCH_ON_POOL, LAUNCH_HERE, START_ON_POOL, PIPELINE } mode;

typedef struct row {
    mode how;
    cpb_pool_kind pool;
    unsigned workers;
    const cpb_session_ramp *sessions;
    const cpb_pipeline_start *pipelines;
} row;

typedef struct read_state {
    cpb_reader reader; /* first */
    const row *how;
    cpb_stream_kind kind;
    cpb_bench_context context;
    cpb_work starter;
    uint64_t sessions_to_run;
    uint64_t expected;
    uint64_t allocations; /* by the workload's own counter, during this run's ops only: the counter is the process's */
} read_state;

void
cpb_reader_finish(cpb_reader *reader)
{
    pthread_mutex_lock(&reader->mutex);
    reader->done = true;
    pthread_cond_signal(&reader->wake);
    pthread_mutex_unlock(&reader->mutex);
}

static void
wait_until_done(cpb_reader *reader)
{
    pthread_mutex_lock(&reader->mutex);
    while (!reader->done)
        pthread_cond_wait(&reader->wake, &reader->mutex);
    reader->done = false;
    pthread_mutex_unlock(&reader->mutex);
}

/* The outer coroutine: creates and awaits one session after another. */
typedef struct acceptor {
    cpb_task base;
    cpb_task *session;
    read_state *state;
    uint64_t left;
} acceptor;

static void
destroy_acceptor(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(acceptor));
}

CPB_NOINLINE static cpb_frame *
resume_acceptor(cpb_frame *frame)
{
    acceptor *self = (acceptor *)(void *)frame;
    read_state *state = self->state;
    cpb_env_restore_allocator(self->base.env);
    if (self->base.frame.state == 1) {
        int value = 0;
        if (!cpb_task_take(self->session, &value))
            state->reader.errors++;
        self->session->frame.destroy(&self->session->frame);
        state->reader.sessions++;
        self->left--;
    }
    if (self->left > 0) {
        self->session = state->how->sessions[state->kind](&state->reader);
        self->base.frame.state = 1;
        if (CPB_LIKELY(self->session != NULL))
            return cpb_task_await(&self->base, self->session);
        state->reader.errors++;
    }
    return cpb_task_return(&self->base, 0);
}

CPB_NOINLINE static cpb_task *
ramp_acceptor(read_state *state)
{
    acceptor *self = cpb_frame_alloc(sizeof *self);
    if (self == NULL)
        return NULL;
    cpb_task_init(&self->base, resume_acceptor, destroy_acceptor);
    self->state = state;
    self->left = state->sessions_to_run;
    return &self->base;
}

static void
handler(void *context, int value)
{
    (void)value;
    cpb_reader_finish(context);
}

static int
launch(read_state *state, cpb_executor executor)
{
    cpb_launch_params params = {
        .executor = executor,
        .allocator = state->context.allocator,
        .stop = &state->reader.stop,
        .handler = handler,
        .context = &state->reader,
    };
    cpb_launch object;
    int status = cpb_launch_begin(&object, &params);
    return status == CPB_OK ? cpb_launch_start(&object, ramp_acceptor(state)) : status;
}

/* On the worker. */
static void
start_on_worker(cpb_work *work)
{
    read_state *state = CPB_CONTAINER_OF(work, read_state, starter);
    if (state->how->how == PIPELINE) {
        state->how->pipelines[state->kind](&state->reader, state->sessions_to_run * CPB_SESSION_READS);
    } else if (launch(state, cpb_bench_executor(&state->context)) != CPB_OK) {
        state->reader.errors++;
        cpb_reader_finish(&state->reader);
    }
}

static int
run_sessions(cpb_run *run, uint64_t ops)
{
    read_state *state = run->state;
    state->sessions_to_run = ops / CPB_SESSION_READS;
    uint64_t before = atomic_load_explicit(&cpb_counting_allocations, memory_order_relaxed);
    int status = CPB_OK;
    switch (state->how->how) {
    case LAUNCH_ON_POOL:
        status = launch(state, cpb_pool_executor(&state->reader.pool));
        break;
    case LAUNCH_HERE:
        status = launch(state, cpb_bench_executor(&state->context));
        break;
    default:
        state->starter.execute = start_on_worker;
        cpb_pool_push(&state->reader.pool, state->how->pool, &state->starter);
    }
    if (status != CPB_OK)
        return run->host->fail(run, status, "no memory for a coroutine frame");
    wait_until_done(&state->reader);
    state->allocations += atomic_load_explicit(&cpb_counting_allocations, memory_order_relaxed) - before;
    state->expected += ops;
    return CPB_OK;
}

static int
verify(cpb_run *run)
{
    const read_state *state = run->state;
    const cpb_reader *reader = &state->reader;
    const int64_t *promised = run->cell->ledger->per_op;
    uint64_t expected = state->expected;
    uint64_t expected_allocations = expected * (uint64_t)(promised[CPB_HEAP_ALLOCS] + promised[CPB_RESOURCE_ALLOCS]);
    if (reader->adapter.failed)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for a posted op");
    if (reader->reads != expected)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu reads completed", (unsigned long long)reader->reads,
                               (unsigned long long)expected);
    if (reader->errors != 0)
        return run->host->fail(run, CPB_E_FAILED, "%llu reads answered an error or bytes that nobody sent",
                               (unsigned long long)reader->errors);
    if (state->how->how != PIPELINE && reader->sessions != expected / CPB_SESSION_READS)
        return run->host->fail(run, CPB_E_FAILED, "%llu of %llu sessions ended", (unsigned long long)reader->sessions,
                               (unsigned long long)(expected / CPB_SESSION_READS));
    if (state->allocations != expected_allocations)
        return run->host->fail(run, CPB_E_FAILED, "the workload counted %llu allocations, not %llu",
                               (unsigned long long)state->allocations, (unsigned long long)expected_allocations);
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    read_state *state = run->state;
    cpb_pool_stop(&state->reader.pool);
    pthread_cond_destroy(&state->reader.wake);
    pthread_mutex_destroy(&state->reader.mutex);
    run->host->release(state);
    cpb_recycling_drain();
}

static const row rows[];
static const cpb_case cells[];

static int
setup(cpb_run *run)
{
    read_state *state = run->host->alloc(sizeof *state);
    if (state == NULL)
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for the read_stream state");
    size_t index = (size_t)(run->cell - cells);
    state->how = &rows[index / 4];
    state->kind = (cpb_stream_kind)(index % 4);
    state->context.allocator = cpb_recycling_resource();
    pthread_mutex_init(&state->reader.mutex, NULL);
    pthread_cond_init(&state->reader.wake, NULL);
    cpb_awaitable_streams_init(&state->reader.awaitables);
    cpb_sender_streams_init(&state->reader.senders, &state->reader.pool);
    cpb_any_scheduler_init(&state->reader.scheduler, &state->reader.pool);
    cpb_adapter_init(&state->reader.adapter, &state->reader.pool);
    run->state = state;
    if (cpb_pool_start(&state->reader.pool, state->how->pool, state->how->workers) == CPB_OK)
        return CPB_OK;
    pthread_cond_destroy(&state->reader.wake);
    pthread_mutex_destroy(&state->reader.mutex);
    run->host->release(state);
    return run->host->fail(run, CPB_E_SYSTEM, "a pool thread could not be started");
}

/* Heap and resource allocations, indirect calls, RMWs, ref changes, mutex pairs, posts per read. Rows of one family and
 * side follow each other in the order of ROWS below. */
#define L(heap, resource, calls, rmws, refs, mutexes, posts)                                                           \
    (&(const cpb_ledger){{heap, resource, 0, calls, rmws, 0, refs, mutexes, posts, 0}})

#define CELL(kind_name, family, io, contender_name, text, cell_flags, cell_cpus, expected)                             \
    {                                                                                                                  \
        .suite = "read_stream", .name = family "/" kind_name "/" io, .contender = contender_name, .summary = text,     \
        .unit = "ns/op", .direction = CPB_LOWER_IS_BETTER, .thread_mode = CPB_THREADED, .flags = cell_flags,           \
        .cpus = cell_cpus, .step = CPB_SESSION_READS, .ledger = expected, .setup = setup, .run = run_sessions,         \
        .verify = verify, .teardown = teardown                                                                         \
    }
#define CELLS(family, io, contender, text, flags, cpus, native, abstract, erased, sync)                                \
    CELL("native", family, io, contender, text, flags, cpus, native),                                                  \
        CELL("abstract", family, io, contender, text, 0, cpus, abstract),                                              \
        CELL("erased", family, io, contender, text, flags, cpus, erased),                                              \
        CELL("sync", family, io, contender, text, 0, cpus, sync)

/* X(family, io, contender, text, flags, cpus, mode, pool, workers, sessions, pipelines, ledgers of the four kinds) */
#include "suites/read_stream_rows.h"

#define X(family, io, contender, text, flags, cpus, how, pool, workers, sessions, pipelines, native, abstract, erased, \
          sync)                                                                                                        \
    {how, pool, workers, sessions, pipelines},
static const row rows[] = {CPB_READ_STREAM_ROWS(X)};
#undef X

#define X(family, io, contender, text, flags, cpus, how, pool, workers, sessions, pipelines, native, abstract, erased, \
          sync)                                                                                                        \
    CELLS(family, io, contender, text, flags, cpus, native, abstract, erased, sync),
static const cpb_case cells[] = {CPB_READ_STREAM_ROWS(X)};
#undef X

const cpb_suite cpb_suite_read_stream = {
    .name = "read_stream",
    .summary = "a read of a stream, by three models in two protocol families (Capy read_stream)",
    .baselines = "task pipeline",
    .cells = cells,
    .cell_count = CPB_CELL_COUNT(cells),
};
