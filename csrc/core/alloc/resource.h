/* resource.h: the memory resource, an allocator behind a table of functions (std::pmr::memory_resource in C).
 *
 * A resource is embedded as the first member of its implementation. allocate answers NULL when there is no memory; size
 * and alignment given to deallocate are those given to allocate. Both calls count in the ledger build as one indirect
 * call; allocate also counts as one resource allocation, whoever serves it. */
#ifndef CPB_ALLOC_RESOURCE_H
#define CPB_ALLOC_RESOURCE_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/ledger.h"

typedef struct cpb_resource cpb_resource;

typedef struct cpb_resource_table {
    void *(*allocate)(cpb_resource *self, size_t size, size_t alignment);
    void (*deallocate)(cpb_resource *self, void *memory, size_t size, size_t alignment);
} cpb_resource_table;

struct cpb_resource {
    const cpb_resource_table *table;
};

/* The alignment that operator new guarantees. */
#define CPB_DEFAULT_ALIGN 16u

static inline void *
cpb_resource_allocate(cpb_resource *resource, size_t size, size_t alignment)
{
    CPB_COUNT(CPB_RESOURCE_ALLOCS);
    return CPB_INDIRECT(resource->table->allocate)(resource, size, alignment);
}

static inline void
cpb_resource_deallocate(cpb_resource *resource, void *memory, size_t size, size_t alignment)
{
    CPB_COUNT(CPB_RESOURCE_FREES);
    CPB_INDIRECT(resource->table->deallocate)(resource, memory, size, alignment);
}

#endif
