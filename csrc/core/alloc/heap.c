#include "alloc/heap.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "base/ledger.h"

CPB_NOINLINE void *
cpb_heap_alloc(size_t size)
{
    CPB_COUNT(CPB_HEAP_ALLOCS);
    CPB_COUNT_N(CPB_HEAP_BYTES, size);
    void *memory = malloc(size);
    /* operator new tests for null on every call; the test is part of its cost. */
    if (CPB_UNLIKELY(memory == NULL))
        return NULL;
    return memory;
}

CPB_NOINLINE void *
cpb_heap_alloc_aligned(size_t size, size_t alignment)
{
    CPB_COUNT(CPB_HEAP_ALLOCS);
    CPB_COUNT_N(CPB_HEAP_BYTES, size);
    return aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}

CPB_NOINLINE void
cpb_heap_free(void *memory)
{
    free(memory);
}
