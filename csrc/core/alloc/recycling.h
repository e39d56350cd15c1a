/* recycling.h: Capy's recycling memory resource (specification B.3): six size classes, a small pool of each per thread,
 * and one shared pool behind a mutex.
 *
 * The inline functions are the path that a frame takes when its allocator is known to be this resource: no table, size
 * class from a constant, thread-local base, count test, array access, count store. The resource itself is a singleton,
 * as in the original: callers compare a resource pointer with cpb_recycling_resource() to choose that path. A block is
 * kept by the thread that frees it. Requests above 2048 bytes go to the heap directly; alignment beyond 16 is ignored.
 */
#ifndef CPB_ALLOC_RECYCLING_H
#define CPB_ALLOC_RECYCLING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/resource.h"
#include "base/compiler.h"

#define CPB_RECYCLING_CLASSES 6u
#define CPB_RECYCLING_SLOTS 16u
#define CPB_RECYCLING_MIN 64u
#define CPB_RECYCLING_MAX 2048u

typedef struct cpb_recycling_pool {
    void *blocks[CPB_RECYCLING_CLASSES][CPB_RECYCLING_SLOTS];
    uint16_t counts[CPB_RECYCLING_CLASSES]; /* 16 bits: the module's thread-locals must fit glibc's spare block */
    bool armed;                             /* the janitor that drains this pool at thread exit is in place */
} cpb_recycling_pool;

/* The workload's own thread-local and its singleton; nobody else touches them. */
extern CPB_THREAD_LOCAL cpb_recycling_pool cpb_recycling_local;
extern cpb_resource cpb_recycling_singleton;

static inline cpb_resource *
cpb_recycling_resource(void)
{
    return &cpb_recycling_singleton;
}

/* The class of a request of at most CPB_RECYCLING_MAX bytes: 0 for up to 64, 5 for up to 2048. Folds for a constant
 * size. */
static inline unsigned
cpb_recycling_class(size_t size)
{
    if (size <= CPB_RECYCLING_MIN)
        return 0;
    return (unsigned)(64 - __builtin_clzl(size - 1)) - 6u;
}

/* The slow halves: take from the shared pool or the heap; arm the janitor, give to the shared pool or the heap. */
void *cpb_recycling_refill(unsigned size_class);
void cpb_recycling_spill(void *memory, unsigned size_class);
void *cpb_recycling_large_alloc(size_t size);
void cpb_recycling_large_free(void *memory);

static inline void *
cpb_recycling_allocate(size_t size)
{
    if (CPB_UNLIKELY(size > CPB_RECYCLING_MAX))
        return cpb_recycling_large_alloc(size);
    unsigned size_class = cpb_recycling_class(size);
    cpb_recycling_pool *pool = &cpb_recycling_local;
    if (CPB_LIKELY(pool->counts[size_class] > 0))
        return pool->blocks[size_class][--pool->counts[size_class]];
    return cpb_recycling_refill(size_class);
}

static inline void
cpb_recycling_deallocate(void *memory, size_t size)
{
    if (CPB_UNLIKELY(size > CPB_RECYCLING_MAX)) {
        cpb_recycling_large_free(memory);
        return;
    }
    unsigned size_class = cpb_recycling_class(size);
    cpb_recycling_pool *pool = &cpb_recycling_local;
    if (CPB_LIKELY(pool->armed && pool->counts[size_class] < CPB_RECYCLING_SLOTS)) {
        pool->blocks[size_class][pool->counts[size_class]++] = memory;
        return;
    }
    cpb_recycling_spill(memory, size_class);
}

/* Gives every block of the calling thread's pool and of the shared pool back to the heap. For teardown and leak checks.
 */
void cpb_recycling_drain(void);

#endif
