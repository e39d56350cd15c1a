/* Both pools with 1 and 2 workers: pushes from three other threads at once, and items that push more than a block
 * holds. */
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

int
main(void)
{
    CHECK_BEGIN();
    for (unsigned workers = 1; workers <= 2; workers++) {
        test_pool(CPB_POOL_MUTEX, workers);
        test_pool(CPB_POOL_STEAL, workers);
    }
    return CHECK_END();
}
