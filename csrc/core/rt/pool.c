/* The mutex pool queues continuations and work items alike: both are two words with the link second. A continuation is
 * told apart by its first word, which has the lowest bit set; the worker then resumes the frame with the thread's frame
 * allocator saved.
 *
 * The work-stealing pool: a worker pushes to and pops from its own block queue without any read-modify-write; what that
 * has no room for goes to its pending list. Other threads push to a worker's remote queue with a compare-exchange, each
 * push to another worker, and wake a sleeper. A worker looks at its queue, its remote queue and its pending list, then
 * tries to steal, yields a while, then sleeps. */
#include "rt/pool.h"

#include <sched.h>
#include <string.h>

#include "base/atomic.h"
#include "base/mutex.h"
#include "capybench.h"

#define SPINS_BEFORE_SLEEP 64

CPB_THREAD_LOCAL cpb_pool_worker *cpb_pool_current;

CPB_NOINLINE static void
resume_saved(cpb_frame *frame)
{
    cpb_resource *saved = cpb_frame_allocator;
    cpb_frame_drive(frame);
    cpb_frame_allocator = saved;
}

static void
execute(cpb_work *item)
{
    uintptr_t first = (uintptr_t)item->execute;
    if (first & 1)
        resume_saved((cpb_frame *)(first - 1)); /* NOLINT: a frame, tagged by pool_post */
    else
        CPB_INDIRECT(item->execute)(item);
}

static void
append(cpb_pool *pool, cpb_work *item)
{
    item->next = NULL;
    if (pool->tail != NULL)
        pool->tail->next = item;
    else
        pool->head = item;
    pool->tail = item;
}

static cpb_work *
take(cpb_pool *pool)
{
    cpb_work *item = pool->head;
    if (item != NULL) {
        pool->head = item->next;
        if (pool->head == NULL)
            pool->tail = NULL;
    }
    return item;
}

/* Beman's pool unlocks before it notifies. */
CPB_NOINLINE void
cpb_pool_push_mutex(cpb_pool *pool, cpb_work *item)
{
    cpb_mutex_lock(&pool->mutex);
    append(pool, item);
    cpb_mutex_unlock(&pool->mutex);
    pthread_cond_signal(&pool->wake);
}

static void *
mutex_worker(void *argument)
{
    cpb_pool_worker *self = argument;
    cpb_pool *pool = self->pool;
    cpb_pool_current = self;
    for (;;) {
        cpb_mutex_lock(&pool->mutex);
        while (pool->head == NULL && !pool->end)
            pthread_cond_wait(&pool->wake, &pool->mutex);
        cpb_work *item = take(pool);
        cpb_mutex_unlock(&pool->mutex);
        if (item == NULL)
            return NULL;
        execute(item);
    }
}

static void
wake_sleepers(cpb_pool *pool)
{
    if (atomic_load_explicit(&pool->sleeping, memory_order_seq_cst) == 0)
        return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
}

CPB_NOINLINE cpb_pool_worker *
cpb_pool_ask_scheduler(cpb_pool *pool)
{
    uintptr_t id = (uintptr_t)pthread_self();
    for (unsigned i = 0; i < pool->workers; i++) {
        if (cpb_atomic_load_acquire(&pool->worker[i].id) == id)
            return &pool->worker[i];
    }
    return NULL;
}

static void
push_remote(cpb_pool_worker *target, cpb_work *item)
{
    cpb_work *head = cpb_atomic_load_relaxed(&target->remote);
    do {
        item->next = head;
        CPB_COUNT(CPB_ATOMIC_RMWS);
    } while (!atomic_compare_exchange_weak_explicit(&target->remote, &head, item, memory_order_seq_cst,
                                                    memory_order_relaxed));
    wake_sleepers(target->pool);
}

/* A block that became full can be stolen from: a sleeper is told. */
CPB_NOINLINE static void
push_own_slowly(cpb_pool_worker *self, cpb_work *item)
{
    if (cpb_block_queue_push(&self->queue, item)) {
        wake_sleepers(self->pool);
        return;
    }
    item->next = NULL;
    if (self->pending == NULL)
        self->pending = item;
    else
        self->pending_tail->next = item;
    self->pending_tail = item;
}

static void
push_own(cpb_pool_worker *self, cpb_work *item)
{
    if (CPB_LIKELY(self->queue.top < CPB_BLOCK_SLOTS))
        cpb_block_queue_push(&self->queue, item);
    else
        push_own_slowly(self, item);
}

/* The thread id is compared again, as by the handle of the remote queue in the original. */
CPB_NOINLINE void
cpb_pool_push_steal(cpb_pool *pool, cpb_work *item)
{
    cpb_pool_worker *self = cpb_pool_ask_scheduler(pool);
    if (CPB_LIKELY(self != NULL))
        push_own(self, item);
    else
        push_remote(&pool->worker[cpb_atomic_add_relaxed(&pool->next_remote, 1) % pool->workers], item);
}

/* Takes all remote items: one to run now, the others into the block, in the order in which they came. */
static cpb_work *
take_remote(cpb_pool_worker *self)
{
    if (cpb_atomic_load_relaxed(&self->remote) == NULL)
        return NULL;
    cpb_work *list = cpb_atomic_exchange_acquire(&self->remote, NULL);
    while (list->next != NULL) {
        cpb_work *next = list->next;
        push_own(self, list);
        list = next;
    }
    return list;
}

static cpb_work *
take_pending(cpb_pool_worker *self)
{
    cpb_work *item = self->pending;
    if (item != NULL)
        self->pending = item->next;
    return item;
}

static cpb_work *
steal(cpb_pool_worker *self)
{
    cpb_pool *pool = self->pool;
    for (unsigned i = 0; i < CPB_POOL_WORKERS; i++) { /* one that was not started has an empty queue */
        cpb_work *item = &pool->worker[i] != self ? cpb_block_queue_steal(&pool->worker[i].queue) : NULL;
        if (item != NULL)
            return item;
    }
    return NULL;
}

static cpb_work *
find_work(cpb_pool_worker *self)
{
    cpb_work *item = cpb_block_queue_pop(&self->queue);
    if (CPB_LIKELY(item != NULL))
        return item;
    if ((item = take_remote(self)) != NULL || (item = take_pending(self)) != NULL)
        return item;
    return steal(self);
}

static bool
nothing_to_do(cpb_pool_worker *self)
{
    if (atomic_load_explicit(&self->remote, memory_order_seq_cst) != NULL)
        return false;
    for (unsigned i = 0; i < CPB_POOL_WORKERS; i++) {
        if (cpb_block_queue_stealable(&self->pool->worker[i].queue))
            return false;
    }
    return true;
}

/* Sleeps unless there is something to do. `sleeping` is raised before the queues are looked at once more, and a pusher
 * looks at it after its push: one of the two sees the other. */
static bool
sleep_or_end(cpb_pool_worker *self)
{
    cpb_pool *pool = self->pool;
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add_explicit(&pool->sleeping, 1, memory_order_seq_cst);
    while (!pool->end && nothing_to_do(self))
        pthread_cond_wait(&pool->wake, &pool->mutex);
    atomic_fetch_sub_explicit(&pool->sleeping, 1, memory_order_seq_cst);
    bool end = pool->end && nothing_to_do(self);
    pthread_mutex_unlock(&pool->mutex);
    return end;
}

static void *
steal_worker(void *argument)
{
    cpb_pool_worker *self = argument;
    cpb_pool_current = self;
    cpb_atomic_store_release(&self->id, (uintptr_t)pthread_self());
    for (unsigned idle = 0;;) {
        cpb_work *item = find_work(self);
        if (CPB_LIKELY(item != NULL)) {
            idle = 0;
            execute(item);
        } else if (++idle < SPINS_BEFORE_SLEEP) {
            sched_yield();
        } else if (sleep_or_end(self)) {
            return NULL;
        }
    }
}

int
cpb_pool_start(cpb_pool *pool, cpb_pool_kind kind, unsigned workers)
{
    memset(pool, 0, sizeof *pool);
    pool->kind = kind;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    for (unsigned i = 0; i < CPB_POOL_WORKERS; i++)
        cpb_block_queue_init(&pool->worker[i].queue);
    for (; pool->workers < workers; pool->workers++) {
        cpb_pool_worker *next = &pool->worker[pool->workers];
        next->pool = pool;
        if (pthread_create(&next->thread, NULL, kind == CPB_POOL_MUTEX ? mutex_worker : steal_worker, next) != 0) {
            cpb_pool_stop(pool);
            return CPB_E_SYSTEM;
        }
        CPB_COUNT(CPB_THREADS_STARTED);
    }
    cpb_atomic_store_release(&pool->started, true);
    return CPB_OK;
}

void
cpb_pool_stop(cpb_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->end = true;
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->workers; i++)
        pthread_join(pool->worker[i].thread, NULL);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
}

static cpb_frame *
pool_dispatch(void *object, cpb_continuation *continuation)
{
    if (cpb_pool_current != NULL && cpb_pool_current->pool == object)
        return continuation->frame;
    cpb_executor executor = cpb_pool_executor(object);
    cpb_executor_post(&executor, continuation);
    return NULL;
}

/* Capy's pool: the once-flag is looked at in every post, and the lock is held while it notifies. The continuation
 * becomes the item: same size, same link. Its frame is restored by its owner before the next post. */
static void
pool_post(void *object, cpb_continuation *continuation)
{
    cpb_pool *pool = object;
    cpb_work *item = (cpb_work *)(void *)continuation;
    uintptr_t tagged = (uintptr_t)continuation->frame | 1u;
    memcpy(&item->execute, &tagged, sizeof tagged);
    cpb_sink(cpb_atomic_load_acquire(&pool->started)); /* the once-flag; threads start in cpb_pool_start here */
    cpb_mutex_lock(&pool->mutex);
    append(pool, item);
    pthread_cond_signal(&pool->wake);
    cpb_mutex_unlock(&pool->mutex);
}

static const cpb_executor_table pool_table = {.dispatch = pool_dispatch, .post = pool_post};

cpb_executor
cpb_pool_executor(cpb_pool *pool)
{
    return (cpb_executor){&pool_table, cpb_launder(pool)};
}
