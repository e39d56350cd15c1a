#include "registry.h"

#include <stdio.h>
#include <string.h>

#include "suites/suite.h"

static const cpb_suite *const suites[] = {
#define X(name) &cpb_suite_##name,
#include "suites/suites.def"
#undef X
};

size_t
cpb_registry_suite_count(void)
{
    return sizeof suites / sizeof suites[0];
}

const cpb_suite *
cpb_registry_suite(size_t index)
{
    return suites[index];
}

int
cpb_cell_id(const cpb_case *cell, char *id, size_t size)
{
    return snprintf(id, size, "%s/%s@%s", cell->suite, cell->name, cell->contender);
}

/* Compares without building the id: names have no upper bound. */
static int
has_id(const cpb_case *cell, const char *id)
{
    size_t suite = strlen(cell->suite);
    size_t name = strlen(cell->name);
    return strncmp(id, cell->suite, suite) == 0 && id[suite] == '/' && strncmp(id + suite + 1, cell->name, name) == 0 &&
           id[suite + 1 + name] == '@' && strcmp(id + suite + 2 + name, cell->contender) == 0;
}

const cpb_case *
cpb_cells_find(const cpb_case *cells, size_t count, const char *id)
{
    for (size_t i = 0; i < count; i++) {
        if (has_id(&cells[i], id))
            return &cells[i];
    }
    return NULL;
}

const cpb_case *
cpb_registry_find(const char *id)
{
    for (size_t i = 0; i < cpb_registry_suite_count(); i++) {
        const cpb_suite *suite = cpb_registry_suite(i);
        const cpb_case *cell = cpb_cells_find(suite->cells, suite->cell_count, id);
        if (cell != NULL)
            return cell;
    }
    return NULL;
}

const char *
cpb_cell_unavailable(const cpb_case *cell)
{
    return cell->unavailable != NULL ? cell->unavailable() : NULL;
}
