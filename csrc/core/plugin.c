#include "plugin.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ledger.h"
#include "registry.h"

#define NAME_MAX_BYTES 120u
#define TEXT_MAX_BYTES 300u
#define CELLS_MAX 4096u
#define CPUS_MAX 4096u

static int
refuse(cpb_error *error, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    error->status = status;
    return status;
}

/* Texts */

static bool
is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("_-.+", byte) != NULL);
}

/* Letters, digits and _-.+, so that a name can stand in an id, a glob and a shell; `parts` allows '/' between parts. */
static bool
is_name(const char *text, bool parts)
{
    size_t length = strnlen(text, NAME_MAX_BYTES + 1);
    if (length == 0 || length > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < length; i++) {
        bool inside = i > 0 && i + 1 < length && text[i - 1] != '/';
        if (!is_name_byte(text[i]) && !(parts && inside && text[i] == '/'))
            return false;
    }
    return true;
}

/* Bytes of the UTF-8 sequence that begins here, 0 when it is none. Overlong forms and surrogates are none. */
static size_t
utf8_length(const unsigned char *text)
{
    unsigned first = text[0];
    size_t length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0u) != 0x80u)
            return 0;
    }
    if ((first == 0xe0 && text[1] < 0xa0) || (first == 0xed && text[1] > 0x9f) || (first == 0xf0 && text[1] < 0x90) ||
        (first == 0xf4 && text[1] > 0x8f))
        return 0;
    return length;
}

/* One line of printable UTF-8. */
static bool
is_line(const char *text)
{
    size_t length = strnlen(text, TEXT_MAX_BYTES + 1);
    if (length == 0 || length > TEXT_MAX_BYTES)
        return false;
    for (size_t i = 0; i < length;) {
        const unsigned char *at = (const unsigned char *)text + i;
        size_t bytes = utf8_length(at);
        if (bytes == 0 || *at < 0x20 || *at == 0x7f)
            return false;
        i += bytes;
    }
    return true;
}

static bool
is_unit(const char *text)
{
    static const char *const units[] = {"ns/op", "ops/s", "items/s", "bytes/s"};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text, units[i]) == 0)
            return true;
    }
    return false;
}

/* Descriptors */

static int
check_names(const cpb_case *cell, size_t index, cpb_error *error)
{
    const struct {
        const char *field;
        const char *text;
        bool parts;
    } names[] = {
        {"suite", cell->suite, false},
        {"name", cell->name, true},
        {"contender", cell->contender, false},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].text == NULL)
            return refuse(error, CPB_E_FAILED, "descriptor %zu has no %s", index, names[i].field);
        if (!is_name(names[i].text, names[i].parts))
            return refuse(error, CPB_E_FAILED,
                          "the %s of descriptor %zu may have 1 to %u letters, digits and _-.+%s, and nothing else",
                          names[i].field, index, NAME_MAX_BYTES, names[i].parts ? " with / between parts" : "");
    }
    return CPB_OK;
}

/* What is wrong with a field, or NULL. */
static const char *
wrong_number(const cpb_case *cell)
{
    if (cell->direction != CPB_LOWER_IS_BETTER && cell->direction != CPB_HIGHER_IS_BETTER)
        return "its direction is neither CPB_LOWER_IS_BETTER nor CPB_HIGHER_IS_BETTER";
    if ((cell->direction == CPB_LOWER_IS_BETTER) != (strcmp(cell->unit, "ns/op") == 0))
        return "its direction does not fit its unit: ns/op is better lower, the others higher";
    if (cell->thread_mode != CPB_SINGLE && cell->thread_mode != CPB_THREADED)
        return "its thread_mode is neither CPB_SINGLE nor CPB_THREADED";
    if ((cell->flags & CPB_PYTHON) != 0)
        return "its flags have CPB_PYTHON, which is for the core's own cells";
    if ((cell->flags & ~CPB_QUICK) != 0)
        return "its flags have bits that this version does not know";
    if (cell->cpus > CPUS_MAX)
        return "its number of cpus is absurd";
    if (cell->step > UINT64_C(1000000000000))
        return "its step is beyond 10^12 ops";
    if (strcmp(cell->unit, "bytes/s") == 0 && cell->bytes_per_op == 0)
        return "its unit is bytes/s, but bytes_per_op is 0";
    for (size_t i = 0; cell->ledger != NULL && i < CPB_LEDGER_COUNT; i++) {
        if (cell->ledger->per_op[i] < CPB_ANY)
            return "its ledger promises a negative count";
    }
    return NULL;
}

static int
check_cell(const cpb_case *cell, size_t index, cpb_error *error)
{
    int status = check_names(cell, index, error);
    if (status != CPB_OK)
        return status;
    const char *wrong = NULL;
    if (cell->summary == NULL || !is_line(cell->summary))
        wrong = "its summary is not one line of printable UTF-8";
    else if (cell->unit == NULL || !is_unit(cell->unit))
        wrong = "its unit is not one of ns/op, ops/s, items/s, bytes/s";
    else if (cell->setup == NULL)
        wrong = "it has no setup function";
    else if (cell->run == NULL)
        wrong = "it has no run function";
    else if (cell->verify == NULL)
        wrong = "it has no verify function";
    else if (cell->teardown == NULL)
        wrong = "it has no teardown function";
    else
        wrong = wrong_number(cell);
    if (wrong == NULL)
        return CPB_OK;
    return refuse(error, CPB_E_FAILED, "%s/%s@%s: %s", cell->suite, cell->name, cell->contender, wrong);
}

/* Whether the cell can stand beside `others`, which come from `file`. */
static int
check_beside(const cpb_case *cell, const cpb_case *others, size_t count, const char *file, cpb_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const cpb_case *other = &others[i];
        if (strcmp(cell->suite, other->suite) != 0 || strcmp(cell->name, other->name) != 0)
            continue;
        if (strcmp(cell->contender, other->contender) == 0)
            return refuse(error, CPB_E_FAILED, "the cell %s/%s@%s is registered already, by %s", cell->suite,
                          cell->name, cell->contender, file);
        if (strcmp(cell->unit, other->unit) != 0)
            return refuse(error, CPB_E_FAILED, "%s/%s@%s measures in %s, but the case is in %s (%s)", cell->suite,
                          cell->name, cell->contender, cell->unit, other->unit, file);
    }
    return CPB_OK;
}

/* The file that holds the core itself: the extension or the program. */
static const char *
own_file(void)
{
    Dl_info info;
    bool known = dladdr((const void *)cpb_registry_suite(0), &info) != 0 && info.dli_fname != NULL;
    return known ? info.dli_fname : "the core";
}

static int
check_cells(const cpb_plugin_set *set, const cpb_plugin *table, const char *path, cpb_error *error)
{
    int status = CPB_OK;
    for (size_t i = 0; status == CPB_OK && i < table->cell_count; i++) {
        const cpb_case *cell = &table->cells[i];
        status = check_cell(cell, i, error);
        for (size_t j = 0; status == CPB_OK && j < cpb_registry_suite_count(); j++) {
            const cpb_suite *suite = cpb_registry_suite(j);
            status = check_beside(cell, suite->cells, suite->cell_count, own_file(), error);
        }
        for (const cpb_loaded *other = set->first; status == CPB_OK && other != NULL; other = other->next)
            status = check_beside(cell, other->table->cells, other->table->cell_count, other->path, error);
        if (status == CPB_OK)
            status = check_beside(cell, table->cells, i, path, error);
    }
    return status;
}

/* The first two fields, then the size of a descriptor, then the rest: nothing is read before it is known to be there.
 */
static int
check_table(const cpb_plugin *table, cpb_error *error)
{
    if (table == NULL)
        return refuse(error, CPB_E_FAILED, "its function " CPB_PLUGIN_ENTRY " answers no table");
    if (table->abi_version != CPB_ABI_VERSION)
        return refuse(error, CPB_E_ABI, "it was built for plug-in ABI %u, this core speaks ABI %u; build it again",
                      (unsigned)table->abi_version, CPB_ABI_VERSION);
    if (table->struct_size != sizeof(cpb_plugin))
        return refuse(error, CPB_E_ABI,
                      "its table has %u bytes, this core's has %zu (both ABI %u); build it again with this version's "
                      "capybench.h",
                      (unsigned)table->struct_size, sizeof(cpb_plugin), CPB_ABI_VERSION);
    if (table->case_size != sizeof(cpb_case))
        return refuse(error, CPB_E_ABI,
                      "its descriptors have %u bytes, this core's have %zu (both ABI %u); build it again with this "
                      "version's capybench.h",
                      (unsigned)table->case_size, sizeof(cpb_case), CPB_ABI_VERSION);
    if (table->name == NULL || !is_name(table->name, false))
        return refuse(error, CPB_E_FAILED, "its name may have 1 to %u letters, digits and _-.+, and nothing else",
                      NAME_MAX_BYTES);
    if (table->version == NULL || !is_line(table->version))
        return refuse(error, CPB_E_FAILED, "its version is not one line of printable UTF-8");
    if (table->cells == NULL || table->cell_count == 0 || table->cell_count > CELLS_MAX)
        return refuse(error, CPB_E_FAILED, "it must have 1 to %u cells", CELLS_MAX);
    if (table->counting > 1)
        return refuse(error, CPB_E_FAILED, "its field counting is %u instead of 0 or 1", (unsigned)table->counting);
    if (table->counting != 0 && !cpb_ledger_counting())
        return refuse(error, CPB_E_FAILED, "it is a counting build, which is never measured");
    if (table->counting == 0 && cpb_ledger_counting())
        return refuse(error, CPB_E_FAILED, "it is not a counting build (its field counting is 0)");
    return CPB_OK;
}

/* Two plug-ins of one name could not be told apart in a result. */
static int
check_name_free(const cpb_plugin_set *set, const cpb_plugin *table, cpb_error *error)
{
    for (const cpb_loaded *other = set->first; other != NULL; other = other->next) {
        if (strcmp(other->table->name, table->name) == 0)
            return refuse(error, CPB_E_FAILED, "a plug-in named %s is loaded already, from %s", table->name,
                          other->path);
    }
    return CPB_OK;
}

static int
load(const cpb_plugin_set *set, void *handle, const char *path, const cpb_plugin **out, cpb_error *error)
{
    cpb_plugin_entry entry;
    void *symbol = dlsym(handle, CPB_PLUGIN_ENTRY);
    if (symbol == NULL)
        return refuse(error, CPB_E_FAILED, "it is no plug-in: it exports no function " CPB_PLUGIN_ENTRY);
    memcpy(&entry, &symbol, sizeof entry); /* ISO C has no conversion from void * to a function */
    const cpb_plugin *table = entry();
    int status = check_table(table, error);
    if (status == CPB_OK)
        status = check_cells(set, table, path, error);
    if (status == CPB_OK)
        status = check_name_free(set, table, error);
    if (status == CPB_OK)
        *out = table;
    return status;
}

static int
add(cpb_plugin_set *set, const char *path, const cpb_plugin *table, cpb_error *error)
{
    cpb_loaded *loaded = malloc(sizeof *loaded);
    char *copy = strdup(path);
    if (loaded == NULL || copy == NULL) {
        free(loaded);
        free(copy);
        return refuse(error, CPB_E_NO_MEMORY, "no memory for the plug-in's entry");
    }
    *loaded = (cpb_loaded){.path = copy, .table = table};
    cpb_loaded **end = &set->first;
    while (*end != NULL)
        end = &(*end)->next;
    *end = loaded;
    return CPB_OK;
}

int
cpb_plugins_load(cpb_plugin_set *set, const char *path, const cpb_plugin **out, cpb_error *error)
{
    if (strchr(path, '/') == NULL)
        return refuse(error, CPB_E_ARGUMENT, "the path of a plug-in must contain a '/'");
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *reason = dlerror();
        return refuse(error, CPB_E_SYSTEM, "it cannot be opened: %s", reason != NULL ? reason : "no reason given");
    }
    const cpb_plugin *table = NULL;
    int status = load(set, handle, path, &table, error);
    if (status == CPB_OK)
        status = add(set, path, table, error);
    if (status != CPB_OK) {
        dlclose(handle);
        return status;
    }
    *out = table;
    return CPB_OK;
}

const cpb_case *
cpb_plugins_find(const cpb_plugin_set *set, const char *id)
{
    const cpb_case *cell = NULL;
    for (const cpb_loaded *loaded = set->first; cell == NULL && loaded != NULL; loaded = loaded->next)
        cell = cpb_cells_find(loaded->table->cells, loaded->table->cell_count, id);
    return cell;
}

const cpb_plugin *
cpb_plugins_owner(const cpb_plugin_set *set, const cpb_case *cell)
{
    for (const cpb_loaded *loaded = set->first; loaded != NULL; loaded = loaded->next) {
        const cpb_plugin *table = loaded->table;
        if (cell >= table->cells && cell < table->cells + table->cell_count)
            return table;
    }
    return NULL;
}

void
cpb_plugins_fini(cpb_plugin_set *set)
{
    while (set->first != NULL) {
        cpb_loaded *loaded = set->first;
        set->first = loaded->next;
        free(loaded->path);
        free(loaded);
    }
}
