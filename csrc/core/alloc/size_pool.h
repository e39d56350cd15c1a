/* size_pool.h: an unsynchronised pool resource (std::pmr::unsynchronized_pool_resource): free lists by size class,
 * refilled in chunks that go back to the heap only when the pool is destroyed. What Cobalt's coroutine frames come
 * from. Requests above the largest class go to the heap. */
#ifndef CPB_ALLOC_SIZE_POOL_H
#define CPB_ALLOC_SIZE_POOL_H

#include "alloc/resource.h"

#define CPB_SIZE_POOL_CLASSES 9u /* 64, 128, ... 16384 bytes */
#define CPB_SIZE_POOL_MIN 64u

typedef struct cpb_size_pool_block cpb_size_pool_block;

typedef struct cpb_size_pool {
    cpb_resource resource; /* first */
    cpb_size_pool_block *free[CPB_SIZE_POOL_CLASSES];
    cpb_size_pool_block *chunks;
} cpb_size_pool;

void cpb_size_pool_init(cpb_size_pool *pool);

/* Gives all chunks back to the heap; every block must have been deallocated, or is forgotten. */
void cpb_size_pool_destroy(cpb_size_pool *pool);

#endif
