/* Sessions: bad op counts, calibration, samples, facts, the refusal of single-threaded cells, the host table. */
#include "base/ledger.h"
#include "base/thread.h"
#include "check.h"
#include "registry.h"
#include "run.h"

static int setups, teardowns;

static int
setup(cpb_run *run)
{
    setups++;
    CHECK_EQ(run->abi_version, CPB_ABI_VERSION);
    CHECK_EQ(run->host->struct_size, sizeof(cpb_host));
    run->host->note(run, "colour", "red");
    run->host->note(run, "colour", "green");
    run->host->note(run, "size", "1");
    return CPB_OK;
}

static int
setup_fails(cpb_run *run)
{
    run->host->fail(run, CPB_E_SYSTEM, "first reason %d", 1);
    return run->host->fail(run, CPB_E_FAILED, "second reason");
}

static int
run_ok(cpb_run *run, uint64_t ops)
{
    (void)run;
    for (volatile uint64_t i = 0; i < ops; i++)
        ;
    return CPB_OK;
}

static int
run_reports(cpb_run *run, uint64_t ops)
{
    run->reported_ns = 7 * ops;
    return CPB_OK;
}

static int
verify_fails(cpb_run *run)
{
    return run->host->fail(run, CPB_E_FAILED, "3 of 4 reads");
}

static int
verify_ok(cpb_run *run)
{
    (void)run;
    return CPB_OK;
}

static void
teardown(cpb_run *run)
{
    (void)run;
    teardowns++;
}

static const char *
never(void)
{
    return "there is no such thing here";
}

static const cpb_case good = {.suite = "s",
                              .name = "c",
                              .contender = "x",
                              .step = 10,
                              .thread_mode = CPB_THREADED,
                              .setup = setup,
                              .run = run_ok,
                              .verify = verify_ok,
                              .teardown = teardown};
static const cpb_case reporting = {.suite = "s",
                                   .name = "c",
                                   .contender = "r",
                                   .thread_mode = CPB_THREADED,
                                   .setup = setup,
                                   .run = run_reports,
                                   .verify = verify_fails,
                                   .teardown = teardown};
static const cpb_case failing = {.suite = "s",
                                 .name = "c",
                                 .contender = "f",
                                 .thread_mode = CPB_THREADED,
                                 .setup = setup_fails,
                                 .run = run_ok,
                                 .verify = verify_ok,
                                 .teardown = teardown};
static const cpb_case absent = {.suite = "s", .name = "c", .contender = "a", .unavailable = never};
static const cpb_case single = {.suite = "s",
                                .name = "c",
                                .contender = "1",
                                .thread_mode = CPB_SINGLE,
                                .setup = setup,
                                .run = run_ok,
                                .verify = verify_ok,
                                .teardown = teardown};

static void
test_samples(void)
{
    cpb_error error = {0};
    cpb_session *session = NULL;
    CHECK_EQ(cpb_session_create(&session, &good, &error), CPB_OK);
    cpb_sample sample;
    CHECK_EQ(cpb_session_sample(session, 0, &sample, &error), CPB_E_ARGUMENT);
    CHECK_EQ(cpb_session_sample(session, 15, &sample, &error), CPB_E_ARGUMENT);
    uint64_t ops = 0;
    CHECK_EQ(cpb_session_calibrate(session, 1000000, &ops, &error), CPB_OK);
    CHECK(ops >= 10 && ops % 10 == 0);
    CHECK_EQ(cpb_session_sample(session, ops, &sample, &error), CPB_OK);
    CHECK(sample.ns > 0);
    CHECK_EQ(cpb_session_verify(session, &error), CPB_OK);
    cpb_usage usage;
    cpb_session_usage(session, &usage);
    CHECK(usage.samples >= 2);
    const char *key, *value;
    CHECK_EQ(cpb_session_fact(session, 0, &key, &value), 1);
    CHECK_STR(key, "colour");
    CHECK_STR(value, "green");
    CHECK_EQ(cpb_session_fact(session, 2, &key, &value), 0);
    cpb_session_destroy(session);
    CHECK_EQ(setups, 1);
    CHECK_EQ(teardowns, 1);
    cpb_session_destroy(NULL);
}

static void
test_reported_interval_and_failed_verify(void)
{
    cpb_error error = {0};
    cpb_session *session = NULL;
    cpb_sample sample;
    CHECK_EQ(cpb_session_create(&session, &reporting, &error), CPB_OK);
    CHECK_EQ(cpb_session_sample(session, 100, &sample, &error), CPB_OK);
    CHECK_EQ(sample.ns, 700);
    CHECK_EQ(cpb_session_verify(session, &error), CPB_E_FAILED);
    CHECK_STR(error.message, "3 of 4 reads");
    cpb_session_destroy(session);
}

static void
test_failures(void)
{
    cpb_error error = {0};
    cpb_session *session = NULL;
    int before = teardowns;
    CHECK_EQ(cpb_session_create(&session, &failing, &error), CPB_E_FAILED);
    CHECK_STR(error.message, "first reason 1");
    CHECK_EQ(cpb_session_create(&session, &absent, &error), CPB_E_UNAVAILABLE);
    CHECK_STR(error.message, "there is no such thing here");
    CHECK(session == NULL);
    CHECK_EQ(teardowns, before);
}

static void
test_single_threaded_cells_are_refused_after_a_thread(void)
{
    cpb_error error = {0};
    cpb_session *session = NULL;
    cpb_parked_thread parked;
    CHECK_EQ(cpb_parked_thread_start(&parked), CPB_OK);
    cpb_parked_thread_stop(&parked);
    CHECK_EQ(cpb_session_create(&session, &single, &error), CPB_E_INVALID);
    CHECK(session == NULL);
}

static void
test_registry(void)
{
    char id[256];
    for (size_t i = 0; i < cpb_registry_suite_count(); i++) {
        const cpb_suite *suite = cpb_registry_suite(i);
        CHECK(i == 0 || strcmp(cpb_registry_suite(i - 1)->name, suite->name) < 0);
        for (size_t j = 0; j < suite->cell_count; j++) {
            CHECK_STR(suite->cells[j].suite, suite->name);
            CHECK(cpb_cell_id(&suite->cells[j], id, sizeof id) < (int)sizeof id);
            CHECK(cpb_registry_find(id) == &suite->cells[j]); /* so no id stands twice */
        }
    }
    CHECK(cpb_registry_find("noop/op@cor") == NULL);
    CHECK(cpb_registry_find("noop/op@core2") == NULL);
    CHECK(cpb_registry_find("noop") == NULL);
    CHECK(cpb_registry_find("") == NULL);
}

int
main(void)
{
    CHECK_BEGIN();
    test_samples();
    test_reported_interval_and_failed_verify();
    test_failures();
    test_registry();
    test_single_threaded_cells_are_refused_after_a_thread();
    return CHECK_END();
}
