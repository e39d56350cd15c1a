/* run.h: a cell being measured: create (setup), calibrate, sample, verify, ledger, destroy (teardown).
 *
 * A session is used by one thread at a time. It starts no thread and allocates nothing while a sample is timed; the
 * clock is read outside the cell's run function, for every contender alike. */
#ifndef CPB_RUN_H
#define CPB_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "capybench.h"

typedef struct cpb_session cpb_session;

/* Caller-owned; filled in when a function answers anything but CPB_OK. */
typedef struct cpb_error {
    int status;
    char message[1024];
} cpb_error;

/* Bits of cpb_sample.flags. */
#define CPB_SAMPLE_SINGLE_BEFORE 1u /* the process had never created a thread before the sample */
#define CPB_SAMPLE_SINGLE_AFTER 2u  /* nor after it */
#define CPB_SAMPLE_CLOCK_BACK 4u    /* the clock stepped back; ns is 0 */
#define CPB_SAMPLE_CLOCK_STILL 8u   /* the clock did not advance; ns is 0 */

typedef struct cpb_sample {
    uint64_t ns; /* of the whole sample, not of an op */
    uint64_t flags;
} cpb_sample;

/* Sums over all samples of a session; times in ns. */
typedef struct cpb_usage {
    uint64_t samples;
    uint64_t thread_cpu_ns;
    uint64_t process_cpu_ns;
    uint64_t voluntary_switches;
    uint64_t involuntary_switches;
    uint64_t minor_faults;
    uint64_t major_faults;
} cpb_usage;

/* Sets a cell up. CPB_E_UNAVAILABLE with the cell's own sentence; CPB_E_INVALID for a single-threaded cell in a process
 * that has ever created a thread; else what setup answers. On failure `*out` is untouched. */
int cpb_session_create(cpb_session **out, const cpb_case *cell, cpb_error *error);

/* Tears the cell down. Accepts NULL. */
void cpb_session_destroy(cpb_session *session);

/* One timed sample of `ops` ops, which must be a positive multiple of the cell's step (else CPB_E_ARGUMENT). */
int cpb_session_sample(cpb_session *session, uint64_t ops, cpb_sample *out, cpb_error *error);

/* The op count for a sample of about `target_ns`: grown tenfold until a sample lasts a useful share of it, then in
 * proportion. */
int cpb_session_calibrate(cpb_session *session, uint64_t target_ns, uint64_t *ops, cpb_error *error);

/* Proves the work of all samples so far. */
int cpb_session_verify(cpb_session *session, cpb_error *error);

/* Counts events: after a warm-up, N(2n) - N(n) of each counter for n = `ops`; divide by `ops` for the count per op. */
int cpb_session_ledger(cpb_session *session, uint64_t ops, int64_t counts[CPB_COUNTER_COUNT], cpb_error *error);

/* A count of the ledger per op. In a cell whose ops come in steps, what happens once a step (a session's frame, a last
 * wake-up) vanishes, as it does in the published tables: up to 64 events a step round to the nearest integer. Elsewhere
 * it is exact. */
double cpb_ledger_per_op(const cpb_case *cell, int64_t count, uint64_t ops);

/* The totals of all counters since the session was created; zeros in the measured build. */
void cpb_session_counters(const cpb_session *session, uint64_t counts[CPB_COUNTER_COUNT]);

void cpb_session_usage(const cpb_session *session, cpb_usage *usage);

/* The facts that the case noted: index from 0 until the answer is 0. The strings live as long as the session. */
int cpb_session_fact(const cpb_session *session, size_t index, const char **key, const char **value);

const cpb_case *cpb_session_cell(const cpb_session *session);

#endif
