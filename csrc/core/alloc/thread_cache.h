/* thread_cache.h: Asio's per-thread cache of small blocks: two per purpose, reused when they are large enough.
 *
 * A block's capacity, in chunks of 4 bytes, stands in the byte after the requested size while it is in use and in its
 * first byte while it is cached; more than 1020 bytes are never cached. A miss frees one cached block of the purpose,
 * so that a cache full of too small blocks mends itself. Not a memory resource: no table, nothing counted but what
 * reaches the heap. Whoever allocates with a size deallocates with the same. */
#ifndef CPB_ALLOC_THREAD_CACHE_H
#define CPB_ALLOC_THREAD_CACHE_H

#include <stddef.h>

#include "alloc/heap.h"
#include "base/compiler.h"

typedef enum cpb_cache_purpose {
    CPB_CACHE_OPERATION,
    CPB_CACHE_FRAME,
    CPB_CACHE_CANCEL,
    CPB_CACHE_GROUP,
    CPB_CACHE_PURPOSES
} cpb_cache_purpose;

#define CPB_CACHE_SLOTS 2u
#define CPB_CACHE_CHUNK 4u
#define CPB_CACHE_MAX_CHUNKS 255u

typedef struct cpb_thread_cache {
    void *blocks[CPB_CACHE_PURPOSES][CPB_CACHE_SLOTS];
} cpb_thread_cache;

/* The slow half: makes room in the cache (unless it is NULL) and asks the heap. NULL when there is no memory. */
void *cpb_thread_cache_miss(cpb_thread_cache *cache, cpb_cache_purpose purpose, size_t size);

/* Gives the cached blocks back to the heap. */
void cpb_thread_cache_drain(cpb_thread_cache *cache);

/* `cache` is NULL on a thread that runs no scheduler. */
static inline void *
cpb_thread_cache_allocate(cpb_thread_cache *cache, cpb_cache_purpose purpose, size_t size)
{
    if (CPB_LIKELY(cache != NULL)) {
        size_t chunks = (size + CPB_CACHE_CHUNK - 1) / CPB_CACHE_CHUNK;
        void **blocks = cache->blocks[purpose];
        for (unsigned i = 0; i < CPB_CACHE_SLOTS; i++) {
            unsigned char *memory = blocks[i];
            if (memory != NULL && memory[0] >= chunks) {
                blocks[i] = NULL;
                memory[size] = memory[0];
                return memory;
            }
        }
    }
    return cpb_thread_cache_miss(cache, purpose, size);
}

static inline void
cpb_thread_cache_deallocate(cpb_thread_cache *cache, cpb_cache_purpose purpose, void *block, size_t size)
{
    unsigned char *memory = block;
    if (CPB_LIKELY(cache != NULL && size <= (size_t)CPB_CACHE_CHUNK * CPB_CACHE_MAX_CHUNKS)) {
        void **blocks = cache->blocks[purpose];
        for (unsigned i = 0; i < CPB_CACHE_SLOTS; i++) {
            if (blocks[i] == NULL) {
                memory[0] = memory[size];
                blocks[i] = memory;
                return;
            }
        }
    }
    cpb_heap_free(memory);
}

#endif
