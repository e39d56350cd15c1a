#include "alloc/counting.h"

#include "alloc/heap.h"
#include "alloc/recycling.h"
#include "base/atomic.h"

_Atomic(uint64_t) cpb_counting_allocations;

CPB_NOINLINE void *
cpb_counting_new(size_t size)
{
    CPB_COUNT(CPB_COUNTED_ALLOCS);
    cpb_atomic_add_relaxed(&cpb_counting_allocations, 1);
    return cpb_heap_alloc(size);
}

CPB_NOINLINE void
cpb_counting_delete(void *memory)
{
    cpb_heap_free(memory);
}

/* The forwarded call is not a second resource allocation, but it is a second indirect call. */
static void *
counting_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    (void)self;
    CPB_COUNT(CPB_COUNTED_ALLOCS);
    cpb_atomic_add_relaxed(&cpb_counting_allocations, 1);
    cpb_resource *upstream = cpb_launder(cpb_recycling_resource());
    return CPB_INDIRECT(upstream->table->allocate)(upstream, size, alignment);
}

static void
counting_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    (void)self;
    cpb_resource *upstream = cpb_launder(cpb_recycling_resource());
    CPB_INDIRECT(upstream->table->deallocate)(upstream, memory, size, alignment);
}

static const cpb_resource_table counting_table = {counting_allocate, counting_deallocate};
static cpb_resource counting = {&counting_table};

cpb_resource *
cpb_counting_resource(void)
{
    return cpb_launder(&counting);
}
