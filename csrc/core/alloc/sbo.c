#include "alloc/sbo.h"

static inline size_t
rounded(size_t size)
{
    return (size + CPB_DEFAULT_ALIGN - 1) & ~(size_t)(CPB_DEFAULT_ALIGN - 1);
}

/* The request passed on is not a second resource allocation, but it is a second indirect call. */
static void *
sbo_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    cpb_sbo *sbo = (cpb_sbo *)(void *)self;
    size_t needed = rounded(size);
    if (CPB_LIKELY(needed <= sbo->available && !sbo->fragmented)) {
        void *memory = sbo->begin + (sbo->size - sbo->available);
        sbo->available -= needed;
        return memory;
    }
    CPB_COUNT(CPB_UPSTREAM_ALLOCS);
    return CPB_INDIRECT(sbo->upstream->table->allocate)(sbo->upstream, size, alignment);
}

static void
sbo_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    cpb_sbo *sbo = (cpb_sbo *)(void *)self;
    unsigned char *block = memory;
    unsigned char *end = sbo->begin + sbo->size;
    if (CPB_LIKELY(sbo->begin <= block && block < end)) {
        size_t returned = rounded(size);
        if (end - sbo->available != block + returned) {
            CPB_COUNT_N(CPB_FRAGMENTATIONS, !sbo->fragmented);
            sbo->fragmented = true;
        }
        sbo->available += returned;
        if (sbo->available == sbo->size)
            sbo->fragmented = false;
        return;
    }
    CPB_INDIRECT(sbo->upstream->table->deallocate)(sbo->upstream, memory, size, alignment);
}

const cpb_resource_table cpb_sbo_table = {sbo_allocate, sbo_deallocate};
