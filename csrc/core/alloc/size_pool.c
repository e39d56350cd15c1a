#include "alloc/size_pool.h"

#include <string.h>

#include "alloc/heap.h"

#define CHUNK_BLOCKS 4u

struct cpb_size_pool_block {
    cpb_size_pool_block *next;
};

static inline unsigned
class_of(size_t size)
{
    if (size <= CPB_SIZE_POOL_MIN)
        return 0;
    return (unsigned)(64 - __builtin_clzll((unsigned long long)size - 1)) - 6u;
}

/* Cuts a chunk, behind its link to the next chunk, into blocks. */
CPB_NOINLINE static void *
refill(cpb_size_pool *pool, unsigned size_class)
{
    size_t size = (size_t)CPB_SIZE_POOL_MIN << size_class;
    unsigned char *chunk = cpb_heap_alloc(CPB_DEFAULT_ALIGN + CHUNK_BLOCKS * size);
    if (chunk == NULL)
        return NULL;
    cpb_size_pool_block *link = (cpb_size_pool_block *)(void *)chunk;
    link->next = pool->chunks;
    pool->chunks = link;
    for (unsigned i = 1; i < CHUNK_BLOCKS; i++) {
        cpb_size_pool_block *block = (cpb_size_pool_block *)(void *)(chunk + CPB_DEFAULT_ALIGN + i * size);
        block->next = pool->free[size_class];
        pool->free[size_class] = block;
    }
    return chunk + CPB_DEFAULT_ALIGN;
}

static void *
size_pool_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    (void)alignment;
    cpb_size_pool *pool = (cpb_size_pool *)(void *)self;
    unsigned size_class = class_of(size);
    if (CPB_UNLIKELY(size_class >= CPB_SIZE_POOL_CLASSES))
        return cpb_heap_alloc(size);
    cpb_size_pool_block *block = pool->free[size_class];
    if (CPB_UNLIKELY(block == NULL))
        return refill(pool, size_class);
    pool->free[size_class] = block->next;
    return block;
}

static void
size_pool_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    (void)alignment;
    cpb_size_pool *pool = (cpb_size_pool *)(void *)self;
    unsigned size_class = class_of(size);
    if (CPB_UNLIKELY(size_class >= CPB_SIZE_POOL_CLASSES)) {
        cpb_heap_free(memory);
        return;
    }
    cpb_size_pool_block *block = memory;
    block->next = pool->free[size_class];
    pool->free[size_class] = block;
}

static const cpb_resource_table size_pool_table = {size_pool_allocate, size_pool_deallocate};

void
cpb_size_pool_init(cpb_size_pool *pool)
{
    memset(pool, 0, sizeof *pool);
    pool->resource.table = &size_pool_table;
}

void
cpb_size_pool_destroy(cpb_size_pool *pool)
{
    while (pool->chunks != NULL) {
        cpb_size_pool_block *next = pool->chunks->next;
        cpb_heap_free(pool->chunks);
        pool->chunks = next;
    }
    memset(pool->free, 0, sizeof pool->free);
}
