/* One operation: post; array of 512; post; array of 256; three times post, drop the 256 and make another; complete. The
 * operation object is moved into each posted operation and out again before it runs, and the posted operation's memory
 * is freed in between. Completion calls the handler while the operation still owns its 512 and its last 256; the
 * handler starts the next operation, whose first post allocates, before those two are dropped. That overlap decides
 * what a small-buffer resource sees.
 *
 * Both posted operations and arrays come from the handler's associated allocator; under `malloc` there is none, and the
 * operations' memory is Asio's per-thread cache while arrays are malloc's. */
#include "suites/op_alloc_bodies.h"

#include <string.h>

#include "alloc/recycling.h"
#include "base/thread.h"

typedef enum kind { MALLOC, MONOTONIC, PMR_MONOTONIC, SBO, RECYCLING, MIMALLOC } kind;

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* The handler's associated allocator, which a template would know by type. */
ALWAYS_INLINE void *
allocate(kind which, const cpb_op_alloc_bench *bench, size_t size, bool operation)
{
    switch (which) {
    case MALLOC:
        if (operation)
            return cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, size);
        return cpb_heap_alloc(size);
    case MONOTONIC:
        return cpb_monotonic_allocate(bench->monotonic, size, 8);
    case RECYCLING:
        CPB_COUNT(CPB_RESOURCE_ALLOCS);
        return cpb_recycling_allocate(size);
    default:
        return cpb_resource_allocate(bench->resource, size, 8);
    }
}

ALWAYS_INLINE void
deallocate(kind which, const cpb_op_alloc_bench *bench, void *memory, size_t size, bool operation)
{
    switch (which) {
    case MALLOC:
        if (operation)
            cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, memory, size);
        else
            cpb_heap_free(memory);
        return;
    case MONOTONIC:
        return;
    case RECYCLING:
        CPB_COUNT(CPB_RESOURCE_FREES);
        cpb_recycling_deallocate(memory, size);
        return;
    default:
        cpb_resource_deallocate(bench->resource, memory, size, 8);
        return;
    }
}

/* A shared array: control block and data in one request. */
typedef struct control control;

typedef struct control_table {
    void (*dispose)(control *self); /* ends the elements */
    void (*destroy)(control *self); /* frees the block */
} control_table;

struct control {
    const control_table *table;
    int64_t references;
    cpb_op_alloc_bench *allocator;
    size_t size;
};

typedef struct shared_array {
    control *control; /* NULL: empty */
    unsigned char *data;
} shared_array;

/* The operation object. */
typedef struct composed {
    unsigned resume;
    shared_array large, small;
    cpb_any_executor executor;
    cpb_op_alloc_bench *handler; /* with its counter, and through it the allocator */
    uint64_t posts;
} composed;

typedef struct posted {
    cpb_operation operation;
    composed composed;
} posted;

/* Characters need no end of their own; the call is made all the same. */
CPB_NOINLINE static void
dispose_nothing(control *self)
{
    (void)self;
}

ALWAYS_INLINE bool
make(kind which, const control_table *table, cpb_op_alloc_bench *bench, size_t size, shared_array *out)
{
    control *made = allocate(which, bench, sizeof *made + size, false);
    if (CPB_UNLIKELY(made == NULL))
        return false;
    *made = (control){table, 1, bench, size};
    *out = (shared_array){made, (unsigned char *)(made + 1)};
    memset(out->data, 0, size);
    cpb_escape(out->data);
    bench->arrays_made++;
    return true;
}

/* Reads a byte that the fill must have cleared and spoils it, so that the next array at this place proves its own. */
ALWAYS_INLINE void
check(cpb_op_alloc_bench *bench, const shared_array *array)
{
    unsigned char *last = &array->data[array->control->size - 1];
    bench->not_zero += *last != 0;
    *last = 0xff;
}

ALWAYS_INLINE void
drop(shared_array *array)
{
    control *block = array->control;
    if (block == NULL)
        return;
    array->control = NULL;
    block->allocator->arrays_dropped++;
    if (CPB_LIKELY(cpb_ref_add(&block->references, -1) == 1)) {
        CPB_INDIRECT(block->table->dispose)(block);
        CPB_INDIRECT(block->table->destroy)(block);
    }
}

/* The end of an array whose monotonic resource was released before: the original gives its reference back in memory
 * that is no longer its own. Here the block is not touched, and only the deallocation, which does nothing, is done. */
ALWAYS_INLINE void
drop_released(kind which, cpb_op_alloc_bench *bench, shared_array *array, size_t size)
{
    void *block = array->control;
    array->control = NULL;
    bench->arrays_dropped++;
    deallocate(which, bench, block, sizeof(control) + size, false);
}

/* `self` is moved twice: here as an argument, and into the operation. */
#define DEFINE_COMPOSED(name, which)                                                                                   \
    static void name##_destroy(control *self)                                                                          \
    {                                                                                                                  \
        deallocate(which, self->allocator, self, sizeof *self + self->size, false);                                    \
    }                                                                                                                  \
                                                                                                                       \
    static const control_table name##_table = {dispose_nothing, name##_destroy};                                       \
    static void name##_complete(void *owner, cpb_operation *operation);                                                \
                                                                                                                       \
    CPB_NOINLINE static void name##_post(composed self)                                                                \
    {                                                                                                                  \
        cpb_any_executor executor = self.executor;                                                                     \
        posted *operation = allocate(which, self.handler, sizeof *operation, true);                                    \
        if (CPB_UNLIKELY(operation == NULL)) {                                                                         \
            drop(&self.small);                                                                                         \
            drop(&self.large);                                                                                         \
            cpb_any_fail(&executor, CPB_E_NO_MEMORY);                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        operation->operation.complete = name##_complete;                                                               \
        operation->composed = self;                                                                                    \
        operation->composed.posts++;                                                                                   \
        cpb_any_post(&executor, &operation->operation);                                                                \
    }                                                                                                                  \
                                                                                                                       \
    CPB_NOINLINE void cpb_op_alloc_##name(cpb_op_alloc_bench *bench)                                                   \
    {                                                                                                                  \
        composed self = {.executor = bench->executor, .handler = bench};                                               \
        bench->started++;                                                                                              \
        name##_post(self);                                                                                             \
    }                                                                                                                  \
                                                                                                                       \
    /* The completion handler: counts, and starts the next operation. */                                               \
    CPB_NOINLINE static void name##_handler(cpb_op_alloc_bench *bench)                                                 \
    {                                                                                                                  \
        if (which == MONOTONIC)                                                                                        \
            cpb_monotonic_release(bench->monotonic);                                                                   \
        else if (which == PMR_MONOTONIC)                                                                               \
            cpb_pmr_monotonic_release((cpb_pmr_monotonic *)(void *)bench->resource);                                   \
        bench->completed++;                                                                                            \
        if (--bench->left > 0)                                                                                         \
            cpb_op_alloc_##name(bench);                                                                                \
    }                                                                                                                  \
                                                                                                                       \
    CPB_NOINLINE static void name##_resume(composed *self)                                                             \
    {                                                                                                                  \
        cpb_op_alloc_bench *bench = self->handler;                                                                     \
        bool ok;                                                                                                       \
        if (self->resume == 0) {                                                                                       \
            ok = make(which, &name##_table, bench, CPB_OP_ALLOC_LARGE, &self->large);                                  \
        } else {                                                                                                       \
            if (self->resume > 1) {                                                                                    \
                check(bench, &self->small);                                                                            \
                drop(&self->small);                                                                                    \
            }                                                                                                          \
            ok = make(which, &name##_table, bench, CPB_OP_ALLOC_SMALL, &self->small);                                  \
        }                                                                                                              \
        if (CPB_UNLIKELY(!ok)) {                                                                                       \
            drop(&self->small);                                                                                        \
            drop(&self->large);                                                                                        \
            cpb_any_fail(&self->executor, CPB_E_NO_MEMORY);                                                            \
            return;                                                                                                    \
        }                                                                                                              \
        if (++self->resume < CPB_OP_ALLOC_POSTS) {                                                                     \
            name##_post(*self);                                                                                        \
            return;                                                                                                    \
        }                                                                                                              \
        check(bench, &self->small);                                                                                    \
        check(bench, &self->large);                                                                                    \
        bench->posts += self->posts;                                                                                   \
        name##_handler(bench);                                                                                         \
        if (which == MONOTONIC || which == PMR_MONOTONIC) {                                                            \
            drop_released(which, bench, &self->small, CPB_OP_ALLOC_SMALL);                                             \
            drop_released(which, bench, &self->large, CPB_OP_ALLOC_LARGE);                                             \
        } else {                                                                                                       \
            drop(&self->small);                                                                                        \
            drop(&self->large);                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    static void name##_complete(void *owner, cpb_operation *operation)                                                 \
    {                                                                                                                  \
        posted *moved_from = (posted *)(void *)operation;                                                              \
        composed self = moved_from->composed;                                                                          \
        deallocate(which, self.handler, moved_from, sizeof *moved_from, true);                                         \
        if (CPB_LIKELY(owner != NULL)) {                                                                               \
            name##_resume(&self);                                                                                      \
        } else {                                                                                                       \
            drop(&self.small);                                                                                         \
            drop(&self.large);                                                                                         \
        }                                                                                                              \
    }

DEFINE_COMPOSED(malloc, MALLOC)
DEFINE_COMPOSED(monotonic, MONOTONIC)
DEFINE_COMPOSED(pmr_monotonic, PMR_MONOTONIC)
DEFINE_COMPOSED(sbo, SBO)
DEFINE_COMPOSED(recycling, RECYCLING)
DEFINE_COMPOSED(mimalloc, MIMALLOC)
