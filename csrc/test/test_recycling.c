/* The recycling resource (specification B.3): classes, LIFO reuse, shared pool, the janitor at thread exit. */
#include <pthread.h>

#include "alloc/recycling.h"
#include "base/ledger.h"
#include "check.h"

static void
test_classes(void)
{
    CHECK_EQ(cpb_recycling_class(1), 0);
    CHECK_EQ(cpb_recycling_class(64), 0);
    CHECK_EQ(cpb_recycling_class(65), 1);
    CHECK_EQ(cpb_recycling_class(128), 1);
    CHECK_EQ(cpb_recycling_class(129), 2);
    CHECK_EQ(cpb_recycling_class(1025), 5);
    CHECK_EQ(cpb_recycling_class(2048), 5);
}

static void
test_last_freed_is_first_taken(void)
{
    void *first = cpb_recycling_allocate(100);
    void *second = cpb_recycling_allocate(128);
    cpb_recycling_deallocate(first, 100);
    cpb_recycling_deallocate(second, 128);
    CHECK(cpb_recycling_allocate(70) == second);
    CHECK(cpb_recycling_allocate(128) == first);
    cpb_recycling_deallocate(first, 128);
    cpb_recycling_deallocate(second, 128);
    cpb_recycling_drain();
}

/* 16 stay with the thread, 16 go to the shared pool, the rest to the heap. */
static void
test_overflow(void)
{
    void *blocks[40];
    for (int i = 0; i < 40; i++)
        blocks[i] = cpb_recycling_allocate(64);
    for (int i = 0; i < 40; i++)
        cpb_recycling_deallocate(blocks[i], 64);
    CHECK_EQ(cpb_recycling_local.counts[0], 16);
    /* Empty the local pool; the next request moves the whole shared class over. */
    for (int i = 0; i < 16; i++)
        CHECK(cpb_recycling_allocate(64) == blocks[15 - i]);
    void *moved = cpb_recycling_allocate(64);
    CHECK(moved == blocks[31]);
    CHECK_EQ(cpb_recycling_local.counts[0], 15);
    cpb_recycling_deallocate(moved, 64);
    for (int i = 0; i < 16; i++)
        cpb_recycling_deallocate(blocks[i], 64);
    cpb_recycling_drain();
    CHECK_EQ(cpb_recycling_local.counts[0], 0);
}

static void
test_large_requests_go_to_the_heap(void)
{
    void *large = cpb_recycling_allocate(2049);
    CHECK(large != NULL);
    cpb_recycling_deallocate(large, 2049);
    for (unsigned c = 0; c < CPB_RECYCLING_CLASSES; c++)
        CHECK_EQ(cpb_recycling_local.counts[c], 0);
}

static void *
free_in_thread(void *block)
{
    cpb_recycling_deallocate(block, 64);
    return cpb_recycling_local.counts[0] == 1 ? block : NULL;
}

/* A block is kept by the thread that frees it; when that thread ends, the shared pool has it. */
static void
test_janitor(void)
{
    void *block = cpb_recycling_allocate(64);
    pthread_t thread;
    void *result = NULL;
    CHECK_EQ(pthread_create(&thread, NULL, free_in_thread, block), 0);
    pthread_join(thread, &result);
    CHECK(result == block);
    CHECK(cpb_recycling_allocate(64) == block);
    cpb_recycling_deallocate(block, 64);
    cpb_recycling_drain();
}

int
main(void)
{
    CHECK_BEGIN();
    test_classes();
    test_last_freed_is_first_taken();
    test_overflow();
    test_large_requests_go_to_the_heap();
    test_janitor();
    return CHECK_END();
}
