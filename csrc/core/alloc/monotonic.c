#include "alloc/monotonic.h"

#include "alloc/heap.h"

void
cpb_monotonic_init(cpb_monotonic *monotonic, void *buffer, size_t size)
{
    monotonic->buffer = (cpb_monotonic_block){.memory = buffer, .available = size, .size = size};
    monotonic->head = &monotonic->buffer;
    monotonic->chunk_size = size;
}

CPB_NOINLINE void
cpb_monotonic_release(cpb_monotonic *monotonic)
{
    cpb_monotonic_block *next = monotonic->buffer.next;
    monotonic->head = &monotonic->buffer;
    monotonic->buffer.next = NULL;
    monotonic->buffer.available = monotonic->buffer.size;
    while (next != NULL) {
        void *memory = next->memory; /* the header lies inside */
        next = next->next;
        cpb_heap_free(memory);
    }
}

/* Aligned operator new with an alignment of up to 16 ends in malloc's own alignment. */
CPB_NOINLINE void *
cpb_monotonic_chunk(cpb_monotonic *monotonic, size_t size, size_t alignment)
{
    size_t least = monotonic->chunk_size > size ? monotonic->chunk_size : size;
    size_t header = _Alignof(cpb_monotonic_block);
    size_t raw = (least + header - 1) / header * header;
    CPB_COUNT(CPB_UPSTREAM_ALLOCS);
    size_t whole = raw + sizeof(cpb_monotonic_block);
    unsigned char *memory =
        alignment > CPB_DEFAULT_ALIGN ? cpb_heap_alloc_aligned(whole, alignment) : cpb_heap_alloc(whole);
    if (CPB_UNLIKELY(memory == NULL))
        return NULL;
    cpb_monotonic_block *block = (cpb_monotonic_block *)(void *)(memory + raw);
    *block = (cpb_monotonic_block){memory, raw - size, raw, alignment, NULL};
    monotonic->head->next = block;
    monotonic->head = block;
    return memory;
}

/* At a chunk's end, as in libstdc++. */
struct cpb_pmr_chunk {
    cpb_pmr_chunk *next;
    void *memory;
    size_t size;
    size_t alignment;
};

CPB_NOINLINE void
cpb_pmr_monotonic_release(cpb_pmr_monotonic *monotonic)
{
    cpb_pmr_chunk *next = monotonic->chunks;
    monotonic->chunks = NULL;
    while (next != NULL) {
        cpb_pmr_chunk chunk = *next;
        next = chunk.next;
        CPB_INDIRECT(monotonic->upstream->table->deallocate)
        (monotonic->upstream, chunk.memory, chunk.size, chunk.alignment);
    }
    monotonic->current = monotonic->buffer;
    monotonic->available = monotonic->buffer_size;
    monotonic->next_size = monotonic->buffer_size + monotonic->buffer_size / 2;
}

CPB_NOINLINE void *
cpb_pmr_monotonic_chunk(cpb_pmr_monotonic *monotonic, size_t size, size_t least_alignment)
{
    size_t least = monotonic->next_size > size ? monotonic->next_size : size;
    size_t alignment = least_alignment > CPB_DEFAULT_ALIGN ? least_alignment : CPB_DEFAULT_ALIGN;
    size_t whole = (least + sizeof(cpb_pmr_chunk) + alignment - 1) / alignment * alignment;
    CPB_COUNT(CPB_UPSTREAM_ALLOCS);
    unsigned char *memory = CPB_INDIRECT(monotonic->upstream->table->allocate)(monotonic->upstream, whole, alignment);
    if (CPB_UNLIKELY(memory == NULL))
        return NULL;
    cpb_pmr_chunk *chunk = (cpb_pmr_chunk *)(void *)(memory + whole - sizeof(cpb_pmr_chunk));
    *chunk = (cpb_pmr_chunk){monotonic->chunks, memory, whole, alignment};
    monotonic->chunks = chunk;
    monotonic->current = memory + size;
    monotonic->available = whole - sizeof(cpb_pmr_chunk) - size;
    monotonic->next_size = least + least / 2;
    return memory;
}

static void *
table_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    return cpb_pmr_monotonic_allocate((cpb_pmr_monotonic *)(void *)self, size, alignment);
}

static void
table_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    (void)self;
    (void)memory;
    (void)size;
    (void)alignment;
}

const cpb_resource_table cpb_pmr_monotonic_table = {table_allocate, table_deallocate};
