/* registry.h: every cell the core knows, by id. Const tables and one list of suites; nothing registers itself before
 * main. */
#ifndef CPB_REGISTRY_H
#define CPB_REGISTRY_H

#include <stddef.h>

#include "capybench.h"

/* The built-in suites, in alphabetical order. */
size_t cpb_registry_suite_count(void);
const cpb_suite *cpb_registry_suite(size_t index);

/* Writes suite/case@contender and a terminating 0; answers the length that the id needs, as snprintf does. */
int cpb_cell_id(const cpb_case *cell, char *id, size_t size);

/* The cell with this id among `cells`, or NULL. */
const cpb_case *cpb_cells_find(const cpb_case *cells, size_t count, const char *id);

/* The built-in cell with this id, or NULL. */
const cpb_case *cpb_registry_find(const char *id);

/* NULL when the cell can run here, else a sentence. */
const char *cpb_cell_unavailable(const cpb_case *cell);

#endif
