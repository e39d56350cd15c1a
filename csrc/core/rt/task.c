/* The launch trampoline and the boundary of an executor switch.
 *
 * Indirect calls of a launch, beside those of the chain itself: dispatch, the table's allocate and deallocate for the
 * trampoline, its invoke function, the handler, and the destruction of the outermost task, whose type the trampoline
 * does not know. A parent frees a child directly, since it made the child by name. */
#include "rt/task.h"

#include "base/thread.h"
#include "capybench.h"

typedef struct trampoline {
    cpb_task base;
    cpb_env env;
    cpb_executor guard; /* the work guard's copy of the executor */
    int64_t *references;
    cpb_resource *resource;
    cpb_task_handler handler;
    void *context;
    void (*invoke)(struct trampoline *self);
    cpb_task *task;
} trampoline;

static void
copy_executor(int64_t *references)
{
    if (references != NULL)
        cpb_ref_add(references, 1);
}

/* The handle that made the strand outlives every launch, so the count cannot reach 0 here. */
static void
drop_executor(int64_t *references)
{
    if (references != NULL)
        cpb_ref_add(references, -1);
}

CPB_NOINLINE static void
invoke_handler(trampoline *self)
{
    int value;
    if (CPB_LIKELY(cpb_task_take(self->task, &value)))
        CPB_INDIRECT(self->handler)(self->context, value);
}

CPB_NOINLINE static void
invoke_nothing(trampoline *self)
{
    (void)self;
}

static void
free_trampoline(trampoline *self)
{
    cpb_executor guard = self->guard;
    int64_t *references = self->references;
    cpb_resource_deallocate(cpb_frame_load_trailer(self, sizeof *self), self, sizeof *self + CPB_FRAME_TRAILER,
                            CPB_DEFAULT_ALIGN);
    cpb_executor_work_finished(&guard);
    drop_executor(references);
}

CPB_NOINLINE static cpb_frame *
resume_trampoline(cpb_frame *frame)
{
    trampoline *self = (trampoline *)(void *)frame;
    CPB_INDIRECT(self->invoke)(self);
    CPB_INDIRECT(self->task->frame.destroy)(&self->task->frame);
    free_trampoline(self);
    return NULL;
}

static void
destroy_trampoline(cpb_frame *frame)
{
    free_trampoline((trampoline *)(void *)frame);
}

CPB_NOINLINE int
cpb_launch_begin(cpb_launch *launch, const cpb_launch_params *params)
{
    launch->params = *params;
    copy_executor(params->references);
    launch->saved_allocator = cpb_frame_allocator;
    cpb_frame_allocator = params->allocator;
    size_t size = sizeof(trampoline);
    trampoline *self = cpb_resource_allocate(params->allocator, size + CPB_FRAME_TRAILER, CPB_DEFAULT_ALIGN);
    if (CPB_UNLIKELY(self == NULL)) {
        cpb_frame_allocator = launch->saved_allocator;
        drop_executor(params->references);
        return CPB_E_NO_MEMORY;
    }
    cpb_frame_store_trailer(self, size, params->allocator);
    cpb_task_init(&self->base, resume_trampoline, destroy_trampoline);
    self->env = (cpb_env){params->executor, params->stop, params->allocator};
    self->guard = params->executor;
    self->references = params->references;
    copy_executor(params->references);
    cpb_executor_work_started(&self->guard);
    self->resource = params->allocator;
    self->handler = params->handler;
    self->context = params->context;
    self->invoke = params->handler != NULL ? invoke_handler : invoke_nothing;
    launch->trampoline = &self->base;
    return CPB_OK;
}

CPB_NOINLINE int
cpb_launch_start(cpb_launch *launch, cpb_task *task)
{
    trampoline *self = (trampoline *)(void *)launch->trampoline;
    int status = CPB_OK;
    if (CPB_LIKELY(task != NULL)) {
        self->task = task;
        task->continuation = &self->base.frame;
        task->env = &self->env;
        cpb_frame_drive(cpb_executor_dispatch(&launch->params.executor, &task->self));
    } else {
        free_trampoline(self);
        status = CPB_E_NO_MEMORY;
    }
    cpb_frame_allocator = launch->saved_allocator;
    drop_executor(launch->params.references);
    return status;
}

/* The child has ended: hop back. The post may run the parent to its end, which frees this frame: nothing of it is read
 * after. */
CPB_NOINLINE static cpb_frame *
resume_boundary(cpb_frame *frame)
{
    cpb_boundary *self = (cpb_boundary *)(void *)frame;
    cpb_executor_post(&self->parent_env->executor, self->parent);
    return NULL;
}

static void
destroy_boundary(cpb_frame *frame)
{
    cpb_boundary_destroy((cpb_boundary *)(void *)frame);
}

CPB_NOINLINE cpb_boundary *
cpb_boundary_create(cpb_task *parent, cpb_task *child, cpb_executor target)
{
    cpb_boundary *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_boundary, destroy_boundary);
    self->env = (cpb_env){target, parent->env->stop, parent->env->allocator};
    self->parent = &parent->self;
    self->parent_env = parent->env;
    self->child = child;
    child->continuation = &self->base.frame;
    child->env = &self->env;
    return self;
}

CPB_NOINLINE void
cpb_boundary_destroy(cpb_boundary *boundary)
{
    cpb_frame_free(boundary, sizeof *boundary);
}
