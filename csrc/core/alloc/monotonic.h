/* monotonic.h: the two monotonic resources of the allocation workload (specification D.6). Both bump a pointer through
 * the caller's buffer, then through chunks that they chain; both give nothing back before release.
 *
 * cpb_monotonic is Cobalt's: every request is padded by alignment - size % alignment, so always by something; when the
 * block is exhausted a chunk of max(chunk size, request) follows, its header at its end; release frees all chunks. No
 * table: its allocator calls it directly. The size is a multiple of the alignment, as that of a C++ object is.
 *
 * cpb_pmr_monotonic is std::pmr::monotonic_buffer_resource: it pads only to align, each chunk is half as large again as
 * the one before, and release starts that over. It stands behind the table.
 *
 * Chunks count as upstream_allocs. NULL when there is no memory. */
#ifndef CPB_ALLOC_MONOTONIC_H
#define CPB_ALLOC_MONOTONIC_H

#include <stdint.h>

#include "alloc/resource.h"

typedef struct cpb_monotonic_block cpb_monotonic_block;
struct cpb_monotonic_block {
    unsigned char *memory;
    size_t available;
    size_t size;
    size_t alignment;
    cpb_monotonic_block *next;
};

typedef struct cpb_monotonic {
    cpb_monotonic_block buffer;
    cpb_monotonic_block *head;
    size_t chunk_size;
} cpb_monotonic;

void cpb_monotonic_init(cpb_monotonic *monotonic, void *buffer, size_t size);
void cpb_monotonic_release(cpb_monotonic *monotonic);
void *cpb_monotonic_chunk(cpb_monotonic *monotonic, size_t size, size_t alignment);

static inline void *
cpb_monotonic_allocate(cpb_monotonic *monotonic, size_t size, size_t least_alignment)
{
    CPB_COUNT(CPB_RESOURCE_ALLOCS);
    size_t alignment =
        least_alignment > _Alignof(cpb_monotonic_block) ? least_alignment : _Alignof(cpb_monotonic_block);
    size_t padding = alignment - size % alignment;
    cpb_monotonic_block *head = monotonic->head;
    if (size + padding <= head->available) {
        unsigned char *memory = head->memory + (head->size - head->available) + padding;
        head->available -= size + padding;
        return memory;
    }
    return cpb_monotonic_chunk(monotonic, size, alignment);
}

typedef struct cpb_pmr_chunk cpb_pmr_chunk;

typedef struct cpb_pmr_monotonic {
    cpb_resource resource; /* first */
    unsigned char *current;
    size_t available;
    size_t next_size;
    cpb_resource *upstream;
    unsigned char *buffer;
    size_t buffer_size;
    cpb_pmr_chunk *chunks;
} cpb_pmr_monotonic;

extern const cpb_resource_table cpb_pmr_monotonic_table;

static inline void
cpb_pmr_monotonic_init(cpb_pmr_monotonic *monotonic, void *buffer, size_t size, cpb_resource *upstream)
{
    monotonic->resource.table = &cpb_pmr_monotonic_table;
    monotonic->current = buffer;
    monotonic->available = size;
    monotonic->next_size = size + size / 2;
    monotonic->upstream = upstream;
    monotonic->buffer = buffer;
    monotonic->buffer_size = size;
    monotonic->chunks = NULL;
}

void cpb_pmr_monotonic_release(cpb_pmr_monotonic *monotonic);
void *cpb_pmr_monotonic_chunk(cpb_pmr_monotonic *monotonic, size_t size, size_t alignment);

/* The allocation of a caller that knows the type and counts it: without the table. */
static inline void *
cpb_pmr_monotonic_allocate(cpb_pmr_monotonic *monotonic, size_t size, size_t alignment)
{
    size_t padding = (size_t)(-(uintptr_t)monotonic->current & (alignment - 1));
    if (CPB_UNLIKELY(monotonic->available < size || monotonic->available - size < padding))
        return cpb_pmr_monotonic_chunk(monotonic, size, alignment);
    unsigned char *memory = monotonic->current + padding;
    monotonic->current = memory + size;
    monotonic->available -= padding + size;
    return memory;
}

#endif
