/* Plug-ins: which are refused, with what status and reason; what an accepted one adds. argv[0]'s folder has the files.
 */
#include "base/ledger.h"
#include "check.h"
#include "plugin.h"
#include "registry.h"
#include "run.h"

static char folder[4000];

static int
load(cpb_plugin_set *set, const char *variant, const cpb_plugin **out, cpb_error *error)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/plugin_%s.so", folder, variant);
    return cpb_plugins_load(set, path, out, error);
}

static void
test_refusals(void)
{
    static const struct {
        const char *variant;
        int status;
        const char *says;
    } refused[] = {
        {"wrong_abi", CPB_E_ABI, "ABI 99, this core speaks ABI 1"},
        {"wrong_size", CPB_E_ABI, "its table has 24 bytes, this core's has"},
        {"wrong_case_size", CPB_E_ABI, "its descriptors have 8 bytes, this core's have"},
        {"no_entry", CPB_E_FAILED, "exports no function capybench_plugin_v1"},
        {"null_table", CPB_E_FAILED, "answers no table"},
        {"null_name", CPB_E_FAILED, "its name may have"},
        {"odd_version", CPB_E_FAILED, "its version"},
        {"no_cells", CPB_E_FAILED, "1 to 4096 cells"},
        {"null_run", CPB_E_FAILED, "x/y@z: it has no run function"},
        {"null_teardown", CPB_E_FAILED, "x/y@z: it has no teardown function"},
        {"null_summary", CPB_E_FAILED, "x/y@z: its summary"},
        {"odd_summary", CPB_E_FAILED, "x/y@z: its summary"},
        {"null_suite", CPB_E_FAILED, "descriptor 0 has no suite"},
        {"odd_name", CPB_E_FAILED, "the name of descriptor 0"},
        {"odd_contender", CPB_E_FAILED, "the contender of descriptor 0"},
        {"odd_unit", CPB_E_FAILED, "x/y@z: its unit"},
        {"odd_direction", CPB_E_FAILED, "x/y@z: its direction"},
        {"odd_mode", CPB_E_FAILED, "x/y@z: its thread_mode"},
        {"odd_flags", CPB_E_FAILED, "CPB_PYTHON"},
        {"no_bytes", CPB_E_FAILED, "bytes_per_op is 0"},
        {"duplicate", CPB_E_FAILED, "noop/op@core is registered already, by "},
        {"twice", CPB_E_FAILED, "x/y@z is registered already, by "},
        {"other_unit", CPB_E_FAILED, "noop/op@other measures in ops/s, but the case is in ns/op"},
        {"missing", CPB_E_SYSTEM, "cannot be opened"},
    };
    cpb_plugin_set set = {0};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        const cpb_plugin *plugin = NULL;
        cpb_error error = {0};
        CHECK_EQ(load(&set, refused[i].variant, &plugin, &error), refused[i].status);
        CHECK_EQ(error.status, refused[i].status);
        if (strstr(error.message, refused[i].says) == NULL)
            CHECK_STR(error.message, refused[i].says);
        CHECK(plugin == NULL && set.first == NULL);
    }
    cpb_error error;
    const cpb_plugin *plugin;
    CHECK_EQ(cpb_plugins_load(&set, "plugin_good.so", &plugin, &error), CPB_E_ARGUMENT);
}

static void
test_cells_of_a_plugin_are_run_like_others(void)
{
    cpb_plugin_set set = {0};
    const cpb_plugin *plugin = NULL;
    cpb_error error = {0};
    CHECK_EQ(load(&set, "good", &plugin, &error), CPB_OK);
    CHECK_STR(plugin->name, "good");
    CHECK(cpb_plugins_find(&set, "noop/op@core") == NULL);
    const cpb_case *cell = cpb_plugins_find(&set, "noop/op@malloc");
    CHECK(cell != NULL && cpb_plugins_owner(&set, cell) == plugin);
    CHECK(cpb_plugins_owner(&set, cpb_registry_find("noop/op@core")) == NULL);
    cpb_session *session = NULL;
    CHECK_EQ(cpb_session_create(&session, cell, &error), CPB_OK);
    cpb_sample sample;
    CHECK_EQ(cpb_session_sample(session, 5, &sample, &error), CPB_OK);
    CHECK_EQ(cpb_session_verify(session, &error), CPB_OK);
    if (cpb_ledger_counting()) {
        int64_t counts[CPB_COUNTER_COUNT];
        CHECK_EQ(cpb_session_ledger(session, 8, counts, &error), CPB_OK);
        CHECK_EQ(counts[CPB_HEAP_ALLOCS], 8);
    }
    cpb_session_destroy(session);

    const cpb_plugin *second = NULL;
    CHECK_EQ(load(&set, "rival", &second, &error), CPB_E_FAILED);
    CHECK(strstr(error.message, "extra/malloc@libc is registered already, by ") != NULL);
    CHECK(strstr(error.message, "plugin_good.so") != NULL);
    CHECK_EQ(load(&set, "other_build", &second, &error), CPB_E_FAILED);
    CHECK(strstr(error.message, cpb_ledger_counting() ? "not a counting build" : "never measured") != NULL);
    cpb_plugins_fini(&set);
    CHECK(set.first == NULL);
}

int
main(int argc, char **argv)
{
    (void)argc;
    CHECK_BEGIN();
    snprintf(folder, sizeof folder, "%s", argv[0]);
    *strrchr(folder, '/') = '\0';
    test_refusals();
    test_cells_of_a_plugin_are_run_like_others();
    return CHECK_END();
}
