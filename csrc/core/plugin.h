/* plugin.h: foreign shared objects: opened, checked, searched.
 *
 * A plug-in is opened with RTLD_LOCAL | RTLD_NOW. Its ABI version, the size of its table and that of its descriptors
 * are compared before anything else of it is used, then every descriptor is checked, so that the rest of the core may
 * treat its cells like built-in ones. What was accepted stays open until the process ends: threads of it may live that
 * long. One thread at a time uses a set. */
#ifndef CPB_PLUGIN_H
#define CPB_PLUGIN_H

#include <stddef.h>

#include "capybench.h"
#include "run.h"

typedef struct cpb_loaded {
    struct cpb_loaded *next;
    char *path;
    const cpb_plugin *table;
} cpb_loaded;

/* The accepted plug-ins of a process, oldest first; all zeros is the empty set. */
typedef struct cpb_plugin_set {
    cpb_loaded *first;
} cpb_plugin_set;

/* Opens the shared object at `path` (which must contain a '/'), checks it and adds it. `*out` is then its table.
 * CPB_E_SYSTEM when it cannot be opened; CPB_E_ABI when it was built for another version, naming both; CPB_E_FAILED
 * when it is no plug-in, describes itself wrongly, counts where this build measures (or the reverse), or has a cell
 * that is registered already, naming the other file. A refused one is closed again and changes nothing. */
int cpb_plugins_load(cpb_plugin_set *set, const char *path, const cpb_plugin **out, cpb_error *error);

/* The cell with this id in a plug-in of the set, or NULL. */
const cpb_case *cpb_plugins_find(const cpb_plugin_set *set, const char *id);

/* The plug-in that a cell of the set belongs to; NULL for a built-in cell. */
const cpb_plugin *cpb_plugins_owner(const cpb_plugin_set *set, const cpb_case *cell);

/* Forgets the set; the shared objects stay open. */
void cpb_plugins_fini(cpb_plugin_set *set);

#endif
