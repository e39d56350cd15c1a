/* foreign.h: mimalloc and jemalloc as memory resources, opened at run time.
 *
 * The libraries are opened locally (RTLD_LOCAL), so that they never replace the process's malloc. Absence is a stated
 * reason, not a build failure. Each frame costs one virtual call plus one call through the pointer that stands for the
 * jump a linked program would make through its PLT; that jump is not counted as an indirect call. */
#ifndef CPB_ALLOC_FOREIGN_H
#define CPB_ALLOC_FOREIGN_H

#include "alloc/resource.h"

typedef enum cpb_foreign_kind { CPB_FOREIGN_MIMALLOC, CPB_FOREIGN_JEMALLOC } cpb_foreign_kind;

typedef struct cpb_foreign {
    cpb_resource resource;
    void *(*mimalloc_alloc)(size_t size, size_t alignment);
    void (*mimalloc_free)(void *memory, size_t alignment);
    void *(*jemalloc_alloc)(size_t size, int flags);
    void (*jemalloc_free)(void *memory, size_t size, int flags);
    void *library;
    char version[64]; /* e.g. "mimalloc 2.0.9" */
    char path[512];   /* the file that was opened */
} cpb_foreign;

/* Folders, separated by colons, that are searched before the system's; set by the Python side, which knows
 * site-packages. */
#define CPB_LIBRARY_PATH_VARIABLE "CAPYBENCH_LIBRARY_PATH"

/* NULL when the library can be opened, else a static sentence that says what to install. Once opened, a
 * library stays mapped: an allocator that is unloaded and loaded again leaves its arenas behind each time. */
const char *cpb_foreign_unavailable(cpb_foreign_kind kind);

/* Opens the library. CPB_OK or CPB_E_UNAVAILABLE. */
int cpb_foreign_open(cpb_foreign *foreign, cpb_foreign_kind kind);

/* Forgets the library, which stays mapped: allocators keep thread-local state that must outlive their last use. Its
 * blocks must be freed before. */
void cpb_foreign_close(cpb_foreign *foreign);

#endif
