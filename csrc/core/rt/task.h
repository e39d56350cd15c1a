/* task.h: the lazy coroutine task of Capy's model and its launch (specification A.3).
 *
 * A task frame begins with cpb_task, the promise: who continues after it, its environment, an exception flag and an
 * optional result. It starts suspended. The parent stores itself and the environment in the child and transfers to it;
 * the child's end stores the result and transfers back; the parent tests the flags, moves the value out and frees the
 * child's frame.
 *
 * The launch trampoline is a frame of its own, taken through the resource's table. It holds work guard, handler,
 * environment and the outermost task, and calls the handler at the end. */
#ifndef CPB_RT_TASK_H
#define CPB_RT_TASK_H

#include "base/thread.h"
#include "capybench.h"
#include "rt/executor.h"

/* Embedded at the start of every task frame: visible by design. */
typedef struct cpb_task {
    cpb_frame frame;
    cpb_continuation self;   /* for queueing this frame */
    cpb_frame *continuation; /* who runs after this task */
    const cpb_env *env;
    void *exception; /* non-null when the body failed */
    bool has_value;
    int value;
} cpb_task;

static inline void
cpb_task_init(cpb_task *task, cpb_frame *(*resume)(cpb_frame *), void (*destroy)(cpb_frame *))
{
    task->frame.resume = resume;
    task->frame.destroy = destroy;
    task->frame.state = 0;
    task->self.frame = &task->frame;
    task->self.next = NULL;
    task->continuation = NULL;
    task->env = NULL;
    task->exception = NULL;
    task->has_value = false;
}

/* The await of a child by a parent: hands over continuation and environment; the answer is to be returned from resume.
 */
static inline cpb_frame *
cpb_task_await(cpb_task *parent, cpb_task *child)
{
    child->continuation = &parent->frame;
    child->env = parent->env;
    return &child->frame;
}

/* The end of a body: stores the value and transfers to the continuation, leaving none behind. */
static inline cpb_frame *
cpb_task_return(cpb_task *task, int value)
{
    task->value = value;
    task->has_value = true;
    cpb_frame *next = task->continuation;
    task->continuation = NULL;
    return next;
}

/* The end of a body without a value. */
static inline cpb_frame *
cpb_task_return_void(cpb_task *task)
{
    cpb_frame *next = task->continuation;
    task->continuation = NULL;
    return next;
}

/* The end of a body that failed, a child's ramp without memory above all: sets the exception flag and transfers. */
static inline cpb_frame *
cpb_task_fail(cpb_task *task)
{
    task->exception = task;
    return cpb_task_return_void(task);
}

/* What a parent does with a child that ended: tests the exception flag, then whether the optional is engaged, and moves
 * the value out. False when the child failed; the parent then frees it and fails too. */
static inline bool
cpb_task_take(cpb_task *child, int *value)
{
    if (CPB_UNLIKELY(child->exception != NULL) || CPB_UNLIKELY(!child->has_value))
        return false;
    child->has_value = false;
    *value = child->value;
    return true;
}

/* Called at a chain's end with its value; not called when the chain failed. */
typedef void (*cpb_task_handler)(void *context, int value);

typedef struct cpb_launch_params {
    cpb_executor executor;
    int64_t *references; /* NULL, or the count that copies of the executor change: a strand's */
    cpb_resource *allocator;
    const cpb_stop_token *stop;
    cpb_task_handler handler;
    void *context;
} cpb_launch_params;

/* The launch trampoline: a frame of its own, visible so that a launch can be compiled into its caller, as a template's
 * is. */
typedef struct cpb_trampoline {
    cpb_task base;
    cpb_env env;
    cpb_executor guard; /* the work guard's copy of the executor */
    int64_t *references;
    cpb_resource *resource;
    cpb_task_handler handler;
    void *context;
    void (*invoke)(struct cpb_trampoline *self);
    cpb_task *task;
} cpb_trampoline;

/* The trampoline's ramp: takes the frame through the resource's table, copies executor and handler, starts the work
 * guard. NULL when there is no memory. */
cpb_trampoline *cpb_trampoline_create(const cpb_launch_params *params);

/* Ends a trampoline that was never started. */
void cpb_trampoline_destroy(cpb_trampoline *trampoline);

/* The launch object: what it copies, and the thread's frame allocator that it replaced. */
typedef struct cpb_launch {
    cpb_executor executor;
    int64_t *references;
    cpb_resource *saved_allocator;
    cpb_trampoline *trampoline;
} cpb_launch;

/* The half of a launch before the task is made: saves the thread's frame allocator and sets the launch's own, so that
 * the task's ramp takes its frame there; makes the trampoline. CPB_OK or CPB_E_NO_MEMORY, with nothing left behind. */
static inline int
cpb_launch_begin(cpb_launch *launch, const cpb_launch_params *params)
{
    launch->executor = params->executor;
    launch->references = params->references;
    if (launch->references != NULL)
        cpb_ref_add(launch->references, 1);
    launch->saved_allocator = cpb_frame_allocator;
    cpb_frame_allocator = params->allocator;
    launch->trampoline = cpb_trampoline_create(params);
    if (CPB_LIKELY(launch->trampoline != NULL))
        return CPB_OK;
    cpb_frame_allocator = launch->saved_allocator;
    if (launch->references != NULL)
        cpb_ref_add(launch->references, -1);
    return CPB_E_NO_MEMORY;
}

/* Hands over the task (made by its ramp between the two calls; NULL means that its ramp failed, and all is undone),
 * dispatches it and drives it as far as it goes on this thread. CPB_OK or CPB_E_NO_MEMORY. */
static inline int
cpb_launch_start(cpb_launch *launch, cpb_task *task)
{
    int status = CPB_OK;
    if (CPB_LIKELY(task != NULL)) {
        launch->trampoline->task = task;
        task->continuation = &launch->trampoline->base.frame;
        task->env = &launch->trampoline->env;
        cpb_frame_drive(cpb_executor_dispatch(&launch->executor, &task->self));
    } else {
        cpb_trampoline_destroy(launch->trampoline);
        status = CPB_E_NO_MEMORY;
    }
    cpb_frame_allocator = launch->saved_allocator;
    if (launch->references != NULL)
        cpb_ref_add(launch->references, -1);
    return status;
}

/* The return hop of run(executor): a frame that posts the parent's continuation to the parent's executor (specification
 * A.5). */
typedef struct cpb_boundary {
    cpb_task base;
    cpb_env env;               /* the child's environment, naming the target executor */
    cpb_continuation *parent;  /* who is posted when the child has ended */
    const cpb_env *parent_env; /* whose executor it is posted to */
    cpb_task *child;
} cpb_boundary;

/* Makes a boundary between `parent` and `child`, to run `child` on `target`. NULL when there is no memory. */
cpb_boundary *cpb_boundary_create(cpb_task *parent, cpb_task *child, cpb_executor target);

/* Posts the child to the target. The parent may already have been resumed, and its frame freed, when this returns: the
 * caller returns NULL at once. */
static inline void
cpb_boundary_post(cpb_boundary *boundary)
{
    cpb_executor_post(&boundary->env.executor, &boundary->child->self);
}

/* Frees the boundary's frame; the child is the caller's. */
void cpb_boundary_destroy(cpb_boundary *boundary);

#endif
