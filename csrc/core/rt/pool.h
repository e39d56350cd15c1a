/* pool.h: thread pools (specification C.3): one queue behind a mutex and a condition variable, and a work-stealing one.
 *
 * What is queued is a work item, two words, embedded in an op-state or made over a continuation: queueing never
 * allocates. Every push to the mutex pool signals, also when nobody waits: skipping that would be another protocol.
 * Threads are started by cpb_pool_start and joined by cpb_pool_stop; all items must be done by then. */
#ifndef CPB_RT_POOL_H
#define CPB_RT_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "rt/block_queue.h"
#include "rt/executor.h"

struct cpb_work {
    void (*execute)(cpb_work *self); /* called once, on a worker; may free or requeue the item */
    cpb_work *next;
};

typedef enum cpb_pool_kind { CPB_POOL_MUTEX, CPB_POOL_STEAL } cpb_pool_kind;

#define CPB_POOL_WORKERS 2u

typedef struct cpb_pool cpb_pool;

typedef struct cpb_pool_worker {
    cpb_pool *pool;
    pthread_t thread;
    _Atomic(uintptr_t) id;            /* the thread, 0 before it runs */
    cpb_work *pending, *pending_tail; /* its own alone: what did not fit its queue */
    cpb_block_queue queue;
    _Atomic(cpb_work *) remote; /* pushed by other threads */
} cpb_pool_worker;

struct cpb_pool {
    cpb_pool_kind kind;
    unsigned workers;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    cpb_work *head, *tail; /* the mutex pool's queue */
    bool end;
    _Atomic(bool) started;
    _Atomic(unsigned) sleeping;
    _Atomic(unsigned) next_remote; /* the worker that the next push from outside goes to */
    cpb_pool_worker worker[CPB_POOL_WORKERS];
};

/* The pool whose worker the calling thread is, or NULL; and that worker. */
extern CPB_THREAD_LOCAL cpb_pool_worker *cpb_pool_current;

/* CPB_OK or CPB_E_SYSTEM, with nothing left behind. `workers` is 1 or 2. */
int cpb_pool_start(cpb_pool *pool, cpb_pool_kind kind, unsigned workers);
void cpb_pool_stop(cpb_pool *pool);

/* The scheduler of a work-stealing pool, asked for afresh by every sender that starts on it: walks the workers
 * comparing thread ids and answers the calling thread's worker, or NULL on any other thread (specification C.2). */
cpb_pool_worker *cpb_pool_ask_scheduler(cpb_pool *pool);

/* Enqueues an item, from any thread. The two functions do not count a post: an executor adapter's caller has counted it
 * already. */
void cpb_pool_push_mutex(cpb_pool *pool, cpb_work *item);
void cpb_pool_push_steal(cpb_pool *pool, cpb_work *item);

/* The same, counted as a post. */
static inline void
cpb_pool_push(cpb_pool *pool, cpb_pool_kind kind, cpb_work *item)
{
    CPB_COUNT(CPB_POSTS);
    if (kind == CPB_POOL_MUTEX)
        cpb_pool_push_mutex(pool, item);
    else
        cpb_pool_push_steal(pool, item);
}

/* The executor of a mutex pool for coroutines: post queues the continuation itself, dispatch runs inline on the pool's
 * own thread. */
cpb_executor cpb_pool_executor(cpb_pool *pool);

#endif
