/* scheduler.h: Asio's scheduler with one thread, and the type-erased handle through which handlers reach it
 * (specification D.1, D.7).
 *
 * An operation is a link and a function. The thread that runs the scheduler queues what its handlers post in a queue of
 * its own and splices that into the global one, under a mutex that is real though uncontended, after each operation:
 * one lock and unlock for each operation handled. Every posted operation counts as outstanding work from its post to
 * its end, atomically both times; so does whatever holds a tracked handle. The scheduler stops when no work is left.
 *
 * Out of memory inside a running chain: whoever meets it calls cpb_scheduler_fail and drops its operation. The chain
 * then stands still, the run ends with that status, and the owner of its outermost frame destroys it. */
#ifndef CPB_RT_SCHEDULER_H
#define CPB_RT_SCHEDULER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "alloc/thread_cache.h"
#include "base/compiler.h"
#include "base/ledger.h"
#include "capybench.h"

typedef struct cpb_scheduler cpb_scheduler;
typedef struct cpb_operation cpb_operation;

struct cpb_operation {
    cpb_operation *next;
    /* Called once. It moves its handler out, frees the operation's memory and then calls the handler; with a NULL owner
     * it only frees what it holds. */
    void (*complete)(void *owner, cpb_operation *self);
};

typedef struct cpb_operation_queue {
    cpb_operation *head, *tail;
} cpb_operation_queue;

struct cpb_scheduler {
    pthread_mutex_t mutex;
    cpb_operation_queue queue; /* under the mutex, as is stopped */
    bool stopped;
    _Atomic(long) outstanding;
    int failure; /* CPB_OK or the first failure of a handler */
};

/* A thread inside cpb_scheduler_run. */
typedef struct cpb_thread_info {
    struct cpb_thread_info *outer;
    cpb_scheduler *scheduler;
    cpb_operation_queue queue; /* its own alone */
    cpb_thread_cache cache;
} cpb_thread_info;

/* The innermost scheduler run of the calling thread, or NULL. */
extern CPB_THREAD_LOCAL cpb_thread_info *cpb_thread_top;

static inline cpb_thread_cache *
cpb_thread_cache_here(void)
{
    return cpb_thread_top != NULL ? &cpb_thread_top->cache : NULL;
}

static inline void
cpb_operation_push(cpb_operation_queue *queue, cpb_operation *operation)
{
    operation->next = NULL;
    if (queue->tail != NULL)
        queue->tail->next = operation;
    else
        queue->head = operation;
    queue->tail = operation;
}

static inline cpb_operation *
cpb_operation_pop(cpb_operation_queue *queue)
{
    cpb_operation *operation = queue->head;
    if (operation != NULL) {
        queue->head = operation->next;
        if (queue->head == NULL)
            queue->tail = NULL;
    }
    return operation;
}

void cpb_scheduler_init(cpb_scheduler *scheduler);

/* Destroys what is still queued. */
void cpb_scheduler_destroy(cpb_scheduler *scheduler);

/* Runs until no work is left: CPB_OK. CPB_E_FAILED, or what cpb_scheduler_fail was told, when work is outstanding yet
 * nothing is queued: with one thread nobody could ever queue it (Asio would wait for ever). */
int cpb_scheduler_run(cpb_scheduler *scheduler);

static inline void
cpb_scheduler_fail(cpb_scheduler *scheduler, int status)
{
    if (scheduler->failure == CPB_OK)
        scheduler->failure = status;
}

/* The type-erased handle: room for two words of object, and the tables of a C++ any_executor. Copies are plain copies,
 * since the object needs no more; whatever is done with it goes through the table. */
typedef struct cpb_any_executor cpb_any_executor;

typedef struct cpb_any_executor_table {
    void (*post)(const cpb_any_executor *self, cpb_operation *operation);
    void (*work_started)(const cpb_any_executor *self);
    void (*work_finished)(const cpb_any_executor *self);
    bool (*running_here)(const cpb_any_executor *self);
    void (*fail)(const cpb_any_executor *self, int status);
} cpb_any_executor_table;

struct cpb_any_executor {
    void *object[2];
    const void *object_table;
    void *target;
    const cpb_any_executor_table *table;
    const void *properties;
};

cpb_any_executor cpb_scheduler_executor(cpb_scheduler *scheduler);

static inline void
cpb_any_post(const cpb_any_executor *executor, cpb_operation *operation)
{
    CPB_COUNT(CPB_POSTS);
    CPB_INDIRECT(executor->table->post)(executor, operation);
}

/* A handle that tracks work: made, and given up. */
static inline void
cpb_any_work_started(const cpb_any_executor *executor)
{
    CPB_INDIRECT(executor->table->work_started)(executor);
}

static inline void
cpb_any_work_finished(const cpb_any_executor *executor)
{
    CPB_INDIRECT(executor->table->work_finished)(executor);
}

/* Whether a dispatch may run its function at once. */
static inline bool
cpb_any_running_here(const cpb_any_executor *executor)
{
    return CPB_INDIRECT(executor->table->running_here)(executor);
}

/* Only where memory ran out. */
static inline void
cpb_any_fail(const cpb_any_executor *executor, int status)
{
    executor->table->fail(executor, status);
}

#endif
