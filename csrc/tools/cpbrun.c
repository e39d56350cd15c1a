/* cpbrun: list and run cells without Python, for perf, gdb, valgrind and the sanitizers.
 *
 *   cpbrun [--plugin FILE]... list [SUITE]
 *   cpbrun [--plugin FILE]... run CELL [--ops N] [--samples N] [--target-ms N] [--ledger]
 *
 * Exit codes: 0 ok, 1 the cell failed, 2 usage, 5 the cell cannot run here. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ledger.h"
#include "plugin.h"
#include "registry.h"
#include "run.h"

typedef struct options {
    const char *cell;
    uint64_t ops; /* 0: calibrate */
    uint64_t samples;
    uint64_t target_ns;
    bool ledger;
} options;

static int
usage(void)
{
    fputs("usage: cpbrun [--plugin FILE]... list [SUITE]\n"
          "       cpbrun [--plugin FILE]... run CELL [--ops N] [--samples N] [--target-ms N] [--ledger]\n"
          "example: cpbrun run coroutine/run_async/depth1@task --samples 5\n",
          stderr);
    return 2;
}

/* Prints the cells of the wanted suite (NULL: all) and answers their number. */
static size_t
list_cells(const cpb_case *cells, size_t count, const char *wanted)
{
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        const cpb_case *cell = &cells[i];
        if (wanted != NULL && strcmp(wanted, cell->suite) != 0)
            continue;
        const char *reason = cpb_cell_unavailable(cell);
        printf("%s/%s@%s\t%s%s%s\n", cell->suite, cell->name, cell->contender, cell->summary,
               reason != NULL ? "\tunavailable: " : "", reason != NULL ? reason : "");
        shown++;
    }
    return shown;
}

static int
list(const cpb_plugin_set *plugins, const char *wanted)
{
    size_t shown = 0;
    for (size_t i = 0; i < cpb_registry_suite_count(); i++)
        shown += list_cells(cpb_registry_suite(i)->cells, cpb_registry_suite(i)->cell_count, wanted);
    for (const cpb_loaded *loaded = plugins->first; loaded != NULL; loaded = loaded->next)
        shown += list_cells(loaded->table->cells, loaded->table->cell_count, wanted);
    if (shown == 0 && wanted != NULL) {
        fprintf(stderr, "cpbrun: there is no suite '%s'; 'cpbrun list' names them\n", wanted);
        return 2;
    }
    return 0;
}

static int
report(const cpb_error *error)
{
    fprintf(stderr, "cpbrun: %s\n", error->message);
    return error->status == CPB_E_UNAVAILABLE ? 5 : error->status == CPB_E_ARGUMENT ? 2 : 1;
}

static int
print_ledger(cpb_session *session, uint64_t ops, cpb_error *error)
{
    int64_t counts[CPB_COUNTER_COUNT];
    if (!cpb_ledger_counting()) {
        fputs("cpbrun: this build does not count; use the ledger build (make LEDGER=1)\n", stderr);
        return 2;
    }
    if (cpb_session_ledger(session, ops, counts, error) != CPB_OK)
        return report(error);
    for (int i = 0; i < CPB_COUNTER_COUNT; i++)
        printf("%s\t%.6g\n", cpb_counter_key((cpb_counter)i), (double)counts[i] / (double)ops);
    return 0;
}

static int
measure(cpb_session *session, const options *wanted, cpb_error *error)
{
    uint64_t ops = wanted->ops;
    if (ops == 0 && cpb_session_calibrate(session, wanted->target_ns, &ops, error) != CPB_OK)
        return report(error);
    if (wanted->ledger)
        return print_ledger(session, ops, error);
    for (uint64_t i = 0; i < wanted->samples; i++) {
        cpb_sample sample;
        if (cpb_session_sample(session, ops, &sample, error) != CPB_OK)
            return report(error);
        printf("ops %" PRIu64 "\tns %" PRIu64 "\tns/op %.3f\tflags %" PRIu64 "\n", ops, sample.ns,
               (double)sample.ns / (double)ops, sample.flags);
    }
    if (cpb_session_verify(session, error) != CPB_OK)
        return report(error);
    puts("verified");
    return 0;
}

static int
run(const cpb_plugin_set *plugins, const options *wanted)
{
    const cpb_case *cell = cpb_registry_find(wanted->cell);
    if (cell == NULL)
        cell = cpb_plugins_find(plugins, wanted->cell);
    if (cell == NULL) {
        fprintf(stderr, "cpbrun: there is no cell '%s'; 'cpbrun list' names them\n", wanted->cell);
        return 2;
    }
    cpb_error error = {0};
    cpb_session *session = NULL;
    if (cpb_session_create(&session, cell, &error) != CPB_OK)
        return report(&error);
    int code = measure(session, wanted, &error);
    cpb_session_destroy(session);
    return code;
}

static bool
parse_number(const char *text, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = text != NULL ? strtoull(text, &end, 10) : 0;
    if (text == NULL || errno != 0 || end == text || *end != '\0' || *text == '-' || value == 0) {
        fprintf(stderr, "cpbrun: '%s' is not a positive whole number\n", text != NULL ? text : "");
        return false;
    }
    *out = value;
    return true;
}

static bool
parse(int argc, char **argv, options *out)
{
    *out = (options){.samples = 5, .target_ns = 10000000};
    for (int i = 2; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        uint64_t target_ms;
        if (strcmp(argv[i], "--ledger") == 0) {
            out->ledger = true;
        } else if (strcmp(argv[i], "--ops") == 0) {
            if (!parse_number(next, &out->ops))
                return false;
            i++;
        } else if (strcmp(argv[i], "--samples") == 0) {
            if (!parse_number(next, &out->samples))
                return false;
            i++;
        } else if (strcmp(argv[i], "--target-ms") == 0) {
            if (!parse_number(next, &target_ms))
                return false;
            out->target_ns = target_ms * 1000000u;
            i++;
        } else if (argv[i][0] != '-' && out->cell == NULL) {
            out->cell = argv[i];
        } else {
            fprintf(stderr, "cpbrun: '%s' is not understood\n", argv[i]);
            return false;
        }
    }
    return out->cell != NULL;
}

/* argv without the plug-ins in front, which are loaded. */
static int
command(const cpb_plugin_set *plugins, int argc, char **argv)
{
    options wanted;
    if (argc >= 2 && argc <= 3 && strcmp(argv[1], "list") == 0)
        return list(plugins, argc == 3 ? argv[2] : NULL);
    if (argc >= 3 && strcmp(argv[1], "run") == 0 && parse(argc, argv, &wanted))
        return run(plugins, &wanted);
    return usage();
}

int
main(int argc, char **argv)
{
    cpb_plugin_set plugins = {0};
    int code = 0;
    while (code == 0 && argc > 2 && strcmp(argv[1], "--plugin") == 0) {
        const cpb_plugin *plugin;
        cpb_error error;
        if (cpb_plugins_load(&plugins, argv[2], &plugin, &error) != CPB_OK) {
            fprintf(stderr, "cpbrun: plug-in %s: %s\n", argv[2], error.message);
            code = 2;
        }
        argc -= 2;
        argv += 2;
    }
    if (code == 0)
        code = command(&plugins, argc, argv);
    cpb_plugins_fini(&plugins);
    return code;
}
