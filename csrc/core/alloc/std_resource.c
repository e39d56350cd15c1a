#include "alloc/std_resource.h"

#include "alloc/heap.h"

static void *
adapter_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    (void)self;
    (void)alignment;
    return cpb_heap_alloc(size);
}

static void
adapter_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    (void)self;
    (void)size;
    (void)alignment;
    cpb_heap_free(memory);
}

static const cpb_resource_table adapter_table = {adapter_allocate, adapter_deallocate};
static cpb_resource adapter = {&adapter_table};

cpb_resource *
cpb_std_resource(void)
{
    return &adapter;
}
