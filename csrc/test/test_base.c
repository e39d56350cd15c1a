/* Status texts, counter keys, clock, build facts, parked thread, reference counts. */
#include "base/build_info.h"
#include "base/clock.h"
#include "base/ledger.h"
#include "base/pace.h"
#include "base/status.h"
#include "base/thread.h"
#include "check.h"

static void
test_status(void)
{
    CHECK_STR(cpb_status_text(CPB_OK), "ok");
    CHECK_STR(cpb_status_text(CPB_E_NO_MEMORY), "out of memory");
    CHECK_STR(cpb_status_text(12345), "unknown status");
    CHECK_STR(cpb_status_name(CPB_E_UNAVAILABLE), "unavailable");
    CHECK_STR(cpb_status_name(CPB_E_FAILED), "failed");
}

static void
test_counters(void)
{
    CHECK_STR(cpb_counter_key(CPB_HEAP_ALLOCS), "heap_allocs");
    CHECK_STR(cpb_counter_key((cpb_counter)(CPB_LEDGER_COUNT - 1)), "syscalls");
    uint64_t before[CPB_COUNTER_COUNT], after[CPB_COUNTER_COUNT];
    cpb_ledger_read(before);
    CPB_COUNT(CPB_POSTS);
    CPB_COUNT_N(CPB_HEAP_BYTES, 5);
    cpb_ledger_read(after);
    CHECK_EQ(after[CPB_POSTS] - before[CPB_POSTS], cpb_ledger_counting() ? 1 : 0);
    CHECK_EQ(after[CPB_HEAP_BYTES] - before[CPB_HEAP_BYTES], cpb_ledger_counting() ? 5 : 0);
}

static void
test_clock(void)
{
    uint64_t first = cpb_clock_ns();
    CHECK(cpb_clock_ns() >= first);
    CHECK(cpb_clock_step_ns(100) > 0);
    CHECK(cpb_clock_process_cpu_ns() > 0);
    CHECK(cpb_pace_ns() > 1000); /* not folded away */
}

static void
test_build_id(void)
{
    char id[96];
    cpb_build_id(id, sizeof id);
    CHECK(strlen(id) >= 16);
    char tiny[5];
    cpb_build_id(tiny, sizeof tiny);
    CHECK_EQ(strlen(tiny), 4);
    CHECK(strncmp(tiny, id, 4) == 0);
}

static void
test_references_and_threads(void)
{
    int64_t references = 1;
    CHECK_EQ(cpb_ref_add(&references, 1), 1);
    cpb_parked_thread parked;
    CHECK_EQ(cpb_parked_thread_start(&parked), CPB_OK);
    CHECK(!cpb_thread_single());
    CHECK_EQ(cpb_ref_add(&references, -1), 2);
    CHECK_EQ(references, 1);
    cpb_parked_thread_stop(&parked);
    CHECK(!cpb_thread_single());
}

int
main(void)
{
    CHECK_BEGIN();
    test_status();
    test_counters();
    test_clock();
    test_build_id();
    test_references_and_threads();
    return CHECK_END();
}
