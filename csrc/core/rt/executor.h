/* executor.h: the type-erased executor reference, two words, and the environment of a chain.
 *
 * dispatch: run now when already in the executor's context, which hands the frame back for symmetric transfer; else
 * enqueue and answer NULL. post: always enqueue; an executor without a queue resumes inline. Library code reaches an
 * executor only through this reference, so that each call is a load of the table, a load of the slot and an indirect
 * call. */
#ifndef CPB_RT_EXECUTOR_H
#define CPB_RT_EXECUTOR_H

#include "rt/frame.h"

typedef struct cpb_executor_table {
    /* What a work guard calls; NULL where an executor tracks no work: an empty function is then called directly, as a
     * compiler that knows the executor's type would. */
    void (*work_started)(void *object);
    void (*work_finished)(void *object);
    cpb_frame *(*dispatch)(void *object, cpb_continuation *continuation);
    void (*post)(void *object, cpb_continuation *continuation);
} cpb_executor_table;

typedef struct cpb_executor {
    const cpb_executor_table *table;
    void *object;
} cpb_executor;

/* Asks a chain to stop. None of the suites requests it; chains carry and test it all the same. */
typedef struct cpb_stop_token {
    bool stop_requested;
} cpb_stop_token;

/* The per-chain environment: passed by pointer, lives in the launch trampoline's frame. */
typedef struct cpb_env {
    cpb_executor executor;
    const cpb_stop_token *stop;
    cpb_resource *allocator;
} cpb_env;

/* Does nothing, out of line. */
void cpb_executor_no_work(void *object);

static inline void
cpb_executor_work_started(const cpb_executor *executor)
{
    if (executor->table->work_started != NULL)
        CPB_INDIRECT(executor->table->work_started)(executor->object);
    else
        cpb_executor_no_work(executor->object);
}

static inline void
cpb_executor_work_finished(const cpb_executor *executor)
{
    if (executor->table->work_finished != NULL)
        CPB_INDIRECT(executor->table->work_finished)(executor->object);
    else
        cpb_executor_no_work(executor->object);
}

static inline cpb_frame *
cpb_executor_dispatch(const cpb_executor *executor, cpb_continuation *continuation)
{
    return CPB_INDIRECT(executor->table->dispatch)(executor->object, continuation);
}

static inline void
cpb_executor_post(const cpb_executor *executor, cpb_continuation *continuation)
{
    CPB_COUNT(CPB_POSTS);
    CPB_INDIRECT(executor->table->post)(executor->object, continuation);
}

/* To be called by a frame body on entry and after every await. */
static inline void
cpb_env_restore_allocator(const cpb_env *env)
{
    cpb_frame_allocator = env->allocator;
}

#endif
