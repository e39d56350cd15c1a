#include "run.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/ledger.h"
#include "base/status.h"
#include "base/thread.h"
#include "registry.h"

#define FACTS_MAX 32u

typedef struct fact {
    char *key;
    char *value;
} fact;

struct cpb_session {
    cpb_run run; /* first: host functions get from one to the other */
    const cpb_case *cell;
    cpb_usage usage;
    uint64_t counters_at_start[CPB_COUNTER_COUNT];
    fact facts[FACTS_MAX];
    size_t fact_count;
    int failed_status;
    char failed_message[sizeof(((cpb_error *)NULL)->message)];
};

static cpb_session *
session_of(cpb_run *run)
{
    return CPB_CONTAINER_OF(run, cpb_session, run);
}

static int
set_error(cpb_error *error, int status, const char *message)
{
    error->status = status;
    snprintf(error->message, sizeof error->message, "%s", message);
    return status;
}

/* Host functions */

static void *
host_alloc(size_t size)
{
    return calloc(1, size);
}

static void
host_release(void *memory)
{
    free(memory);
}

static int
host_fail(cpb_run *run, int status, const char *format, ...)
{
    cpb_session *session = session_of(run);
    if (session->failed_status == CPB_OK) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(session->failed_message, sizeof session->failed_message, format, arguments);
        va_end(arguments);
        session->failed_status = status;
    }
    return status;
}

static void
host_count(cpb_counter counter, uint64_t events)
{
    (void)counter;
    (void)events;
    CPB_COUNT_N(counter, events);
}

/* A fact beyond the room for them is dropped: facts explain, they decide nothing. A repeated key replaces the older
 * value. */
static void
host_note(cpb_run *run, const char *key, const char *value)
{
    cpb_session *session = session_of(run);
    size_t i = 0;
    while (i < session->fact_count && strcmp(session->facts[i].key, key) != 0)
        i++;
    if (i == FACTS_MAX)
        return;
    char *copy = strdup(value);
    if (copy == NULL)
        return;
    if (i < session->fact_count) {
        free(session->facts[i].value);
    } else {
        session->facts[i].key = strdup(key);
        if (session->facts[i].key == NULL) {
            free(copy);
            return;
        }
        session->fact_count++;
    }
    session->facts[i].value = copy;
}

/* Sampling */

typedef struct timed {
    uint64_t start;
    uint64_t end;
    int status;
} timed;

/* The one place where the clock is read around work. */
static inline timed
time_call(int (*body)(void *, uint64_t), void *context, uint64_t ops)
{
    timed result;
    result.start = cpb_clock_ns();
    result.status = body(context, ops);
    result.end = cpb_clock_ns();
    return result;
}

static uint64_t
host_sample(int (*body)(void *, uint64_t), void *context, uint64_t ops)
{
    timed result = time_call(body, context, ops);
    return result.end > result.start ? result.end - result.start : 0;
}

static const cpb_host host_table = {
    .abi_version = CPB_ABI_VERSION,
    .struct_size = sizeof(cpb_host),
    .alloc = host_alloc,
    .release = host_release,
    .fail = host_fail,
    .count = host_count,
    .note = host_note,
    .sample = host_sample,
};

#ifdef CPB_INJECT_CELL
/* For tests of comparisons only: a core in which one cell takes CPB_INJECT_PERCENT longer than its work does. */
static int
run_cell(void *context, uint64_t ops)
{
    cpb_session *session = context;
    const cpb_case *cell = session->cell;
    uint64_t start = cpb_clock_ns();
    int status = cell->run(&session->run, ops);
    char id[256];
    snprintf(id, sizeof id, "%s/%s@%s", cell->suite, cell->name, cell->contender);
    if (strcmp(id, CPB_INJECT_CELL) == 0) {
        uint64_t until = cpb_clock_ns() + (cpb_clock_ns() - start) * CPB_INJECT_PERCENT / 100;
        while (cpb_clock_ns() < until)
            ;
        session->run.reported_ns += session->run.reported_ns * CPB_INJECT_PERCENT / 100;
    }
    return status;
}
#else
static int
run_cell(void *context, uint64_t ops)
{
    cpb_session *session = context;
    return session->cell->run(&session->run, ops);
}
#endif

typedef struct usage_point {
    uint64_t thread_cpu_ns;
    uint64_t process_cpu_ns;
    struct rusage process;
} usage_point;

static void
read_usage(usage_point *point)
{
    point->thread_cpu_ns = cpb_clock_thread_cpu_ns();
    point->process_cpu_ns = cpb_clock_process_cpu_ns();
    getrusage(RUSAGE_SELF, &point->process);
}

static void
add_usage(cpb_usage *sum, const usage_point *before, const usage_point *after)
{
    sum->samples++;
    sum->thread_cpu_ns += after->thread_cpu_ns - before->thread_cpu_ns;
    sum->process_cpu_ns += after->process_cpu_ns - before->process_cpu_ns;
    sum->voluntary_switches += (uint64_t)(after->process.ru_nvcsw - before->process.ru_nvcsw);
    sum->involuntary_switches += (uint64_t)(after->process.ru_nivcsw - before->process.ru_nivcsw);
    sum->minor_faults += (uint64_t)(after->process.ru_minflt - before->process.ru_minflt);
    sum->major_faults += (uint64_t)(after->process.ru_majflt - before->process.ru_majflt);
}

static int
failure(cpb_session *session, int status, cpb_error *error)
{
    bool told = session->failed_status != CPB_OK;
    return set_error(error, status, told ? session->failed_message : cpb_status_text(status));
}

static uint64_t
step_of(const cpb_case *cell)
{
    return cell->step > 0 ? cell->step : 1;
}

int
cpb_session_sample(cpb_session *session, uint64_t ops, cpb_sample *out, cpb_error *error)
{
    if (ops == 0 || ops % step_of(session->cell) != 0)
        return set_error(error, CPB_E_ARGUMENT, "ops must be a positive multiple of the cell's step");
    uint64_t flags = cpb_thread_single() ? CPB_SAMPLE_SINGLE_BEFORE : 0;
    usage_point before, after;
    session->run.reported_ns = 0;
    read_usage(&before);
    timed result = time_call(run_cell, session, ops);
    read_usage(&after);
    if (result.status != CPB_OK)
        return failure(session, result.status, error);
    add_usage(&session->usage, &before, &after);
    if (cpb_thread_single())
        flags |= CPB_SAMPLE_SINGLE_AFTER;
    uint64_t ns = 0;
    if (result.end < result.start)
        flags |= CPB_SAMPLE_CLOCK_BACK;
    else if (result.end == result.start)
        flags |= CPB_SAMPLE_CLOCK_STILL;
    else
        ns = session->run.reported_ns != 0 ? session->run.reported_ns : result.end - result.start;
    *out = (cpb_sample){.ns = ns, .flags = flags};
    return CPB_OK;
}

int
cpb_session_calibrate(cpb_session *session, uint64_t target_ns, uint64_t *ops, cpb_error *error)
{
    uint64_t step = step_of(session->cell);
    uint64_t steps = 1;
    /* 10^15 ops bound the search on a clock that stands still. */
    while (steps < UINT64_C(1000000000000000) / step) {
        cpb_sample sample;
        uint64_t start = cpb_clock_ns();
        int status = cpb_session_sample(session, steps * step, &sample, error);
        if (status != CPB_OK)
            return status;
        /* The wall clock, not the sample: a case that reports intervals of its own must not be run for longer. */
        uint64_t wall = cpb_clock_ns() - start;
        if (wall >= target_ns / 4) {
            double wanted = (double)steps * ((double)target_ns / (double)(wall > 0 ? wall : 1));
            steps = wanted < 1.0 ? 1 : (uint64_t)(wanted + 0.5);
            break;
        }
        /* Far from the target a tenfold step; near it no more than what is missing, with something to spare. */
        double factor = wall > 0 ? 0.5 * (double)target_ns / (double)wall : 10.0;
        steps = factor < 2.0 ? steps * 2 : factor > 10.0 ? steps * 10 : (uint64_t)((double)steps * factor);
    }
    *ops = steps * step;
    return CPB_OK;
}

int
cpb_session_verify(cpb_session *session, cpb_error *error)
{
    int status = session->cell->verify(&session->run);
    return status == CPB_OK ? CPB_OK : failure(session, status, error);
}

static int
count_run(cpb_session *session, uint64_t ops, uint64_t counts[CPB_COUNTER_COUNT], cpb_error *error)
{
    uint64_t before[CPB_COUNTER_COUNT];
    cpb_ledger_read(before);
    int status = session->cell->run(&session->run, ops);
    if (status != CPB_OK)
        return failure(session, status, error);
    cpb_ledger_read(counts);
    for (size_t i = 0; i < CPB_COUNTER_COUNT; i++)
        counts[i] -= before[i];
    return CPB_OK;
}

int
cpb_session_ledger(cpb_session *session, uint64_t ops, int64_t counts[CPB_COUNTER_COUNT], cpb_error *error)
{
    if (ops == 0 || ops % step_of(session->cell) != 0)
        return set_error(error, CPB_E_ARGUMENT, "ops must be a positive multiple of the cell's step");
    uint64_t once[CPB_COUNTER_COUNT], twice[CPB_COUNTER_COUNT];
    int status = count_run(session, 2 * ops, once, error); /* warm-up */
    if (status == CPB_OK)
        status = count_run(session, ops, once, error);
    if (status == CPB_OK)
        status = count_run(session, 2 * ops, twice, error);
    if (status != CPB_OK)
        return status;
    for (size_t i = 0; i < CPB_COUNTER_COUNT; i++)
        counts[i] = (int64_t)(twice[i] - once[i]);
    return CPB_OK;
}

double
cpb_ledger_per_op(const cpb_case *cell, int64_t count, uint64_t ops)
{
    double per_op = (double)count / (double)ops;
    double nearest = (double)(int64_t)(per_op < 0 ? per_op - 0.5 : per_op + 0.5);
    double rest = (double)count - nearest * (double)ops;
    uint64_t step = step_of(cell);
    double allowed = step > 1 ? 64.0 * ((double)ops / (double)step) : 0.0;
    return (rest < 0 ? -rest : rest) <= allowed ? nearest : per_op;
}

void
cpb_session_counters(const cpb_session *session, uint64_t counts[CPB_COUNTER_COUNT])
{
    cpb_ledger_read(counts);
    for (size_t i = 0; i < CPB_COUNTER_COUNT; i++)
        counts[i] -= session->counters_at_start[i];
}

void
cpb_session_usage(const cpb_session *session, cpb_usage *usage)
{
    *usage = session->usage;
}

int
cpb_session_fact(const cpb_session *session, size_t index, const char **key, const char **value)
{
    if (index >= session->fact_count)
        return 0;
    *key = session->facts[index].key;
    *value = session->facts[index].value;
    return 1;
}

const cpb_case *
cpb_session_cell(const cpb_session *session)
{
    return session->cell;
}

static void
free_session(cpb_session *session)
{
    for (size_t i = 0; i < session->fact_count; i++) {
        free(session->facts[i].key);
        free(session->facts[i].value);
    }
    free(session);
}

/* What can be said before setup. */
static int
refuse(const cpb_case *cell, cpb_error *error)
{
    const char *reason = cpb_cell_unavailable(cell);
    if (reason != NULL)
        return set_error(error, CPB_E_UNAVAILABLE, reason);
    if (cell->flags & CPB_PYTHON)
        return set_error(error, CPB_E_ARGUMENT, "this contender is run by Python itself, not by the core");
    if (cell->thread_mode == CPB_SINGLE && !cpb_thread_single())
        return set_error(error, CPB_E_INVALID,
                         "this case needs a process that has never created a thread, and this one has; run it in a "
                         "fresh worker");
    return CPB_OK;
}

int
cpb_session_create(cpb_session **out, const cpb_case *cell, cpb_error *error)
{
    int status = refuse(cell, error);
    if (status != CPB_OK)
        return status;
    cpb_session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return set_error(error, CPB_E_NO_MEMORY, cpb_status_text(CPB_E_NO_MEMORY));
    session->run = (cpb_run){
        .abi_version = CPB_ABI_VERSION,
        .struct_size = sizeof(cpb_run),
        .host = &host_table,
        .cell = cell,
    };
    session->cell = cell;
    cpb_ledger_read(session->counters_at_start);
    status = cell->setup(&session->run);
    if (status != CPB_OK) {
        failure(session, status, error);
        free_session(session);
        return status;
    }
    *out = session;
    return CPB_OK;
}

void
cpb_session_destroy(cpb_session *session)
{
    if (session == NULL)
        return;
    session->cell->teardown(&session->run);
    free_session(session);
}
