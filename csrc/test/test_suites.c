/* Every cell of the registry: set up, run, verified, torn down; in the counting build its events equal the descriptor's
 * promise. Cells that need a process without threads come first. */
#include "base/ledger.h"
#include "base/thread.h"
#include "check.h"
#include "registry.h"
#include "run.h"

static int cells_run;

static void
compare_ledger(const cpb_case *cell, const char *id, const int64_t counts[CPB_COUNTER_COUNT], uint64_t ops)
{
    for (int i = 0; cell->ledger != NULL && i < CPB_LEDGER_COUNT; i++) {
        int64_t promised = cell->ledger->per_op[i];
        if (promised == CPB_ANY || cpb_ledger_per_op(cell, counts[i], ops) == (double)promised)
            continue;
        fprintf(stderr, "%s: %s is %.3f an op, promised %lld\n", id, cpb_counter_key((cpb_counter)i),
                (double)counts[i] / (double)ops, (long long)promised);
        check_failures++;
    }
}

static void
run_cell(const cpb_case *cell)
{
    char id[256];
    cpb_cell_id(cell, id, sizeof id);
    cpb_error error = {0};
    cpb_session *session = NULL;
    int status = cpb_session_create(&session, cell, &error);
    if (status != CPB_OK) {
        printf("%s: %s\n", id, error.message);
        CHECK(status == CPB_E_UNAVAILABLE || (cell->flags & CPB_PYTHON));
        return;
    }
    uint64_t ops = 2 * (cell->step > 0 ? cell->step : 1);
    cpb_sample sample;
    int64_t counts[CPB_COUNTER_COUNT];
    if (cpb_session_sample(session, ops, &sample, &error) != CPB_OK || cpb_session_verify(session, &error) != CPB_OK ||
        cpb_session_ledger(session, ops, counts, &error) != CPB_OK || cpb_session_verify(session, &error) != CPB_OK) {
        fprintf(stderr, "%s: %s\n", id, error.message);
        check_failures++;
    } else if (cpb_ledger_counting()) {
        compare_ledger(cell, id, counts, ops);
    }
    cpb_session_destroy(session);
    cells_run++;
}

int
main(void)
{
    CHECK_BEGIN();
    bool single = cpb_thread_single();
    for (int mode = single ? CPB_SINGLE : CPB_THREADED; mode <= CPB_THREADED; mode++) {
        for (size_t i = 0; i < cpb_registry_suite_count(); i++) {
            const cpb_suite *suite = cpb_registry_suite(i);
            for (size_t j = 0; j < suite->cell_count; j++) {
                if (suite->cells[j].thread_mode == (uint32_t)mode)
                    run_cell(&suite->cells[j]);
            }
        }
    }
    CHECK(single); /* a runtime that starts threads of its own would hide most cells */
    CHECK(cells_run > 0);
    return CHECK_END();
}
