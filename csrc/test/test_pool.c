/* Both pools with 1 and 2 workers: pushes from three other threads at once, and items that push more than a block
 * holds. The block queue alone: order, bounds, exactly-once under a thief. Stealing: what a busy worker has in full
 * blocks is done by the other one. */
#include <time.h>

#include "check.h"
#include "rt/pool.h"

enum { PUSHERS = 3, ROOTS = 500, FAN = 30 };

typedef struct item {
    cpb_work work;
    cpb_pool *pool;
    int fan;
} item;

static _Atomic(long) done;

static void
leaf(cpb_work *work)
{
    free(CPB_CONTAINER_OF(work, item, work));
    atomic_fetch_add(&done, 1);
}

static item *
make_item(cpb_pool *pool, void (*execute)(cpb_work *), int fan)
{
    item *self = calloc(1, sizeof *self);
    CHECK(self != NULL);
    self->work.execute = execute;
    self->pool = pool;
    self->fan = fan;
    return self;
}

static void
root(cpb_work *work)
{
    item *self = CPB_CONTAINER_OF(work, item, work);
    CHECK(cpb_pool_current != NULL && cpb_pool_current->pool == self->pool);
    for (int i = 0; i < self->fan; i++)
        cpb_pool_push(self->pool, self->pool->kind, &make_item(self->pool, leaf, 0)->work);
    leaf(work);
}

static void *
push_all(void *pool)
{
    for (int i = 0; i < ROOTS; i++)
        cpb_pool_push(pool, ((cpb_pool *)pool)->kind, &make_item(pool, root, i % FAN)->work);
    return NULL;
}

static void
test_pool(cpb_pool_kind kind, unsigned workers)
{
    static cpb_pool pool;
    pthread_t threads[PUSHERS];
    long expected = 0;
    for (int i = 0; i < ROOTS; i++)
        expected += PUSHERS * (1 + i % FAN);
    done = 0;
    CHECK_EQ(cpb_pool_start(&pool, kind, workers), CPB_OK);
    for (int i = 0; i < PUSHERS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, push_all, &pool), 0);
    for (int i = 0; i < PUSHERS; i++)
        pthread_join(threads[i], NULL);
    /* Bounded, so that a lost item is a failure and not a hang. */
    for (int i = 0; i < 3000 && atomic_load(&done) != expected; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    CHECK_EQ(done, expected);
    cpb_pool_stop(&pool);
}

enum { ITEMS = CPB_BLOCKS * CPB_BLOCK_SLOTS };
static cpb_block_queue queue;
static cpb_work works[ITEMS + 1];

static void
test_queue_order(void)
{
    cpb_block_queue_init(&queue);
    CHECK(cpb_block_queue_pop(&queue) == NULL);
    for (int i = 0; i < ITEMS; i++)
        CHECK(cpb_block_queue_push(&queue, &works[i]));
    CHECK(!cpb_block_queue_push(&queue, &works[ITEMS]));
    /* The youngest to the owner, the oldest to a thief. */
    CHECK(cpb_block_queue_pop(&queue) == &works[ITEMS - 1]);
    for (int i = 0; i < 10; i++)
        CHECK(cpb_block_queue_steal(&queue) == &works[i]);
    CHECK(cpb_block_queue_push(&queue, &works[ITEMS - 1]));
    CHECK(cpb_block_queue_push(&queue, &works[ITEMS])); /* the first block is free again */
    for (int i = ITEMS; i >= 10; i--)
        CHECK(cpb_block_queue_pop(&queue) == &works[i]);
    CHECK(cpb_block_queue_pop(&queue) == NULL);
    CHECK(cpb_block_queue_steal(&queue) == NULL);
    /* The current block is the owner's alone. */
    for (unsigned i = 0; i < CPB_BLOCK_SLOTS; i++)
        CHECK(cpb_block_queue_push(&queue, &works[i]));
    CHECK(!cpb_block_queue_stealable(&queue));
    CHECK(cpb_block_queue_steal(&queue) == NULL);
    CHECK(cpb_block_queue_push(&queue, &works[CPB_BLOCK_SLOTS]));
    CHECK(cpb_block_queue_stealable(&queue));
}

static _Atomic(int) taken[ITEMS];
static _Atomic(bool) owner_ended;

static void *
thief(void *count)
{
    while (!atomic_load(&owner_ended)) {
        cpb_work *won = cpb_block_queue_steal(&queue);
        if (won == NULL)
            continue;
        atomic_fetch_add(&taken[won - works], 1);
        ++*(long *)count;
    }
    return NULL;
}

/* Rounds of pushing and popping beside a thief: every item once, whoever gets it. */
static void
test_queue_thief(void)
{
    pthread_t thread;
    long stolen = 0; /* whether any is, the machine decides */
    cpb_block_queue_init(&queue);
    CHECK_EQ(pthread_create(&thread, NULL, thief, &stolen), 0);
    int rounds = 0;
    for (; rounds < 2000; rounds++) {
        int pushed = 1 + rounds * 7 % ITEMS;
        for (int i = 0; i < pushed; i++)
            CHECK(cpb_block_queue_push(&queue, &works[i]));
        for (cpb_work *won; (won = cpb_block_queue_pop(&queue)) != NULL;)
            atomic_fetch_add(&taken[won - works], 1);
        for (int i = 0; i < pushed; i++) {
            while (atomic_load(&taken[i]) == 0)
                ; /* the thief has won it and will say so */
            CHECK_EQ(atomic_load(&taken[i]), 1);
            atomic_store(&taken[i], 0);
        }
    }
    atomic_store(&owner_ended, true);
    pthread_join(thread, NULL);
}

enum { BUSY_FAN = 2 * CPB_BLOCK_SLOTS + 4 };

/* Two full blocks and four items more: the other worker does exactly the full ones while this one is busy. */
static void
busy_root(cpb_work *work)
{
    item *self = CPB_CONTAINER_OF(work, item, work);
    for (int i = 0; i < self->fan; i++)
        cpb_pool_push(self->pool, CPB_POOL_STEAL, &make_item(self->pool, leaf, 0)->work);
    for (int i = 0; i < 3000 && atomic_load(&done) < (long)(2 * CPB_BLOCK_SLOTS); i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    CHECK_EQ(atomic_load(&done), (long)(2 * CPB_BLOCK_SLOTS));
    leaf(work);
}

static void
test_stealing(void)
{
    static cpb_pool pool;
    done = 0;
    CHECK_EQ(cpb_pool_start(&pool, CPB_POOL_STEAL, 2), CPB_OK);
    cpb_pool_push(&pool, CPB_POOL_STEAL, &make_item(&pool, busy_root, BUSY_FAN)->work);
    for (int i = 0; i < 3000 && atomic_load(&done) != BUSY_FAN + 1; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    CHECK_EQ(done, BUSY_FAN + 1);
    cpb_pool_stop(&pool);
}

/* More than a worker's queue holds: the rest waits in its pending list. */
static void
test_pending(void)
{
    static cpb_pool pool;
    done = 0;
    CHECK_EQ(cpb_pool_start(&pool, CPB_POOL_STEAL, 1), CPB_OK);
    cpb_pool_push(&pool, CPB_POOL_STEAL, &make_item(&pool, root, ITEMS + 50)->work);
    for (int i = 0; i < 3000 && atomic_load(&done) != ITEMS + 51; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    CHECK_EQ(done, ITEMS + 51);
    cpb_pool_stop(&pool);
}

int
main(void)
{
    CHECK_BEGIN();
    test_queue_order();
    test_queue_thief();
    test_stealing();
    test_pending();
    for (unsigned workers = 1; workers <= 2; workers++) {
        test_pool(CPB_POOL_MUTEX, workers);
        test_pool(CPB_POOL_STEAL, workers);
    }
    return CHECK_END();
}
