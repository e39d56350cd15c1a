/* The shared pool is touched only when a thread's own pool is empty or full. A thread that ends drains its pool into
 * the shared one through a pthread key destructor (the "janitor"): the pool itself stays plain thread-local data, so
 * that the fast path pays for no guard. */
#include "alloc/recycling.h"

#include <pthread.h>
#include <string.h>

#include "alloc/heap.h"
#include "base/mutex.h"

CPB_THREAD_LOCAL cpb_recycling_pool cpb_recycling_local;

static struct {
    pthread_mutex_t mutex;
    void *blocks[CPB_RECYCLING_CLASSES][CPB_RECYCLING_SLOTS];
    unsigned counts[CPB_RECYCLING_CLASSES];
} shared = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static pthread_key_t janitor_key;
static pthread_once_t janitor_once = PTHREAD_ONCE_INIT;
static bool janitor_ready;

static void
give_to_shared_or_heap(void *memory, unsigned size_class)
{
    cpb_mutex_lock(&shared.mutex);
    bool kept = shared.counts[size_class] < CPB_RECYCLING_SLOTS;
    if (kept)
        shared.blocks[size_class][shared.counts[size_class]++] = memory;
    cpb_mutex_unlock(&shared.mutex);
    if (!kept)
        cpb_heap_free(memory);
}

static void
empty_local_pool(void)
{
    cpb_recycling_pool *pool = &cpb_recycling_local;
    for (unsigned c = 0; c < CPB_RECYCLING_CLASSES; c++) {
        while (pool->counts[c] > 0)
            give_to_shared_or_heap(pool->blocks[c][--pool->counts[c]], c);
    }
}

static void
janitor(void *unused)
{
    (void)unused;
    empty_local_pool();
    cpb_recycling_local.armed = false;
}

static void
make_janitor_key(void)
{
    janitor_ready = pthread_key_create(&janitor_key, janitor) == 0;
}

static bool
arm_janitor(void)
{
    pthread_once(&janitor_once, make_janitor_key);
    /* Any non-null value makes the destructor run. */
    return janitor_ready && pthread_setspecific(janitor_key, &shared) == 0;
}

CPB_NOINLINE void *
cpb_recycling_refill(unsigned size_class)
{
    cpb_recycling_pool *pool = &cpb_recycling_local;
    cpb_mutex_lock(&shared.mutex);
    unsigned count = shared.counts[size_class];
    memcpy(pool->blocks[size_class], shared.blocks[size_class], count * sizeof(void *));
    shared.counts[size_class] = 0;
    cpb_mutex_unlock(&shared.mutex);
    if (count == 0)
        return cpb_heap_alloc((size_t)CPB_RECYCLING_MIN << size_class);
    pool->counts[size_class] = (uint16_t)(count - 1);
    return pool->blocks[size_class][count - 1];
}

CPB_NOINLINE void
cpb_recycling_spill(void *memory, unsigned size_class)
{
    cpb_recycling_pool *pool = &cpb_recycling_local;
    if (!pool->armed)
        pool->armed = arm_janitor();
    if (pool->armed && pool->counts[size_class] < CPB_RECYCLING_SLOTS)
        pool->blocks[size_class][pool->counts[size_class]++] = memory;
    else
        give_to_shared_or_heap(memory, size_class);
}

CPB_NOINLINE void *
cpb_recycling_large_alloc(size_t size)
{
    return cpb_heap_alloc(size);
}

CPB_NOINLINE void
cpb_recycling_large_free(void *memory)
{
    cpb_heap_free(memory);
}

void
cpb_recycling_drain(void)
{
    empty_local_pool();
    pthread_mutex_lock(&shared.mutex);
    for (unsigned c = 0; c < CPB_RECYCLING_CLASSES; c++) {
        while (shared.counts[c] > 0)
            cpb_heap_free(shared.blocks[c][--shared.counts[c]]);
    }
    pthread_mutex_unlock(&shared.mutex);
}

static void *
table_allocate(cpb_resource *self, size_t size, size_t alignment)
{
    (void)self;
    (void)alignment;
    return cpb_recycling_allocate(size);
}

static void
table_deallocate(cpb_resource *self, void *memory, size_t size, size_t alignment)
{
    (void)self;
    (void)alignment;
    cpb_recycling_deallocate(memory, size);
}

static const cpb_resource_table recycling_table = {table_allocate, table_deallocate};
cpb_resource cpb_recycling_singleton = {&recycling_table};
