#include "rt/scheduler.h"

#include "base/atomic.h"
#include "base/mutex.h"

CPB_THREAD_LOCAL cpb_thread_info *cpb_thread_top;

void
cpb_scheduler_init(cpb_scheduler *scheduler)
{
    *scheduler = (cpb_scheduler){.failure = CPB_OK};
    pthread_mutex_init(&scheduler->mutex, NULL);
}

void
cpb_scheduler_destroy(cpb_scheduler *scheduler)
{
    cpb_operation *operation;
    while ((operation = cpb_operation_pop(&scheduler->queue)) != NULL)
        operation->complete(NULL, operation);
    pthread_mutex_destroy(&scheduler->mutex);
}

/* Appends all of `from`, which is then empty. */
static inline void
splice(cpb_operation_queue *to, cpb_operation_queue *from)
{
    if (from->head == NULL)
        return;
    if (to->tail != NULL)
        to->tail->next = from->head;
    else
        to->head = from->head;
    to->tail = from->tail;
    *from = (cpb_operation_queue){NULL, NULL};
}

static inline void
finish_work(cpb_scheduler *scheduler)
{
    if (cpb_atomic_sub_acq_rel(&scheduler->outstanding, 1) == 1) {
        cpb_mutex_lock(&scheduler->mutex);
        scheduler->stopped = true;
        cpb_mutex_unlock(&scheduler->mutex);
    }
}

CPB_NOINLINE int
cpb_scheduler_run(cpb_scheduler *scheduler)
{
    cpb_thread_info info = {.outer = cpb_thread_top, .scheduler = scheduler};
    cpb_thread_top = &info;
    cpb_mutex_lock(&scheduler->mutex);
    scheduler->stopped = false;
    int status = CPB_OK;
    while (!scheduler->stopped) {
        cpb_operation *operation = cpb_operation_pop(&scheduler->queue);
        if (CPB_UNLIKELY(operation == NULL)) {
            status = scheduler->failure != CPB_OK ? scheduler->failure : CPB_E_FAILED;
            break;
        }
        cpb_mutex_unlock(&scheduler->mutex);
        CPB_INDIRECT(operation->complete)(scheduler, operation);
        finish_work(scheduler);
        cpb_mutex_lock(&scheduler->mutex);
        splice(&scheduler->queue, &info.queue);
    }
    cpb_mutex_unlock(&scheduler->mutex);
    cpb_thread_top = info.outer;
    cpb_thread_cache_drain(&info.cache);
    return status == CPB_OK ? scheduler->failure : status;
}

static inline cpb_thread_info *
running_thread(const cpb_scheduler *scheduler)
{
    for (cpb_thread_info *info = cpb_thread_top; info != NULL; info = info->outer) {
        if (info->scheduler == scheduler)
            return info;
    }
    return NULL;
}

static void
executor_post(const cpb_any_executor *self, cpb_operation *operation)
{
    cpb_scheduler *scheduler = self->target;
    cpb_atomic_add_acq_rel(&scheduler->outstanding, 1);
    cpb_thread_info *info = running_thread(scheduler);
    if (CPB_LIKELY(info != NULL)) {
        cpb_operation_push(&info->queue, operation);
        return;
    }
    cpb_mutex_lock(&scheduler->mutex);
    cpb_operation_push(&scheduler->queue, operation);
    cpb_mutex_unlock(&scheduler->mutex);
}

static void
executor_work_started(const cpb_any_executor *self)
{
    cpb_scheduler *scheduler = self->target;
    cpb_atomic_add_acq_rel(&scheduler->outstanding, 1);
}

static void
executor_work_finished(const cpb_any_executor *self)
{
    finish_work(self->target);
}

static bool
executor_running_here(const cpb_any_executor *self)
{
    return running_thread(self->target) != NULL;
}

static void
executor_fail(const cpb_any_executor *self, int status)
{
    cpb_scheduler_fail(self->target, status);
}

static const cpb_any_executor_table executor_table = {executor_post, executor_work_started, executor_work_finished,
                                                      executor_running_here, executor_fail};

CPB_NOINLINE cpb_any_executor
cpb_scheduler_executor(cpb_scheduler *scheduler)
{
    return (cpb_any_executor){
        .object = {scheduler, NULL}, .target = scheduler, .table = &executor_table, .object_table = &executor_table};
}
