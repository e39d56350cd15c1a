/* The launch trampoline and the boundary of an executor switch.
 *
 * Indirect calls of a launch, beside those of the chain itself: dispatch, the table's allocate and deallocate for the
 * trampoline, its invoke function, the handler, and the destruction of the outermost task, whose type the trampoline
 * does not know. A parent frees a child directly, since it made the child by name. */
#include "rt/task.h"

CPB_NOINLINE static void
invoke_handler(cpb_trampoline *self)
{
    int value;
    if (CPB_LIKELY(cpb_task_take(self->task, &value)))
        CPB_INDIRECT(self->handler)(self->context, value);
}

/* The handle that made the strand outlives every launch, so the count cannot reach 0 here. */
void
cpb_trampoline_destroy(cpb_trampoline *self)
{
    cpb_executor_work_finished(&self->guard);
    if (self->references != NULL)
        cpb_ref_add(self->references, -1);
    cpb_resource_deallocate(cpb_frame_load_trailer(self, sizeof *self), self, sizeof *self + CPB_FRAME_TRAILER,
                            CPB_DEFAULT_ALIGN);
}

CPB_NOINLINE static cpb_frame *
resume_trampoline(cpb_frame *frame)
{
    cpb_trampoline *self = (cpb_trampoline *)(void *)frame;
    CPB_INDIRECT(self->invoke)(self);
    CPB_INDIRECT(self->task->frame.destroy)(&self->task->frame);
    cpb_trampoline_destroy(self);
    return NULL;
}

static void
destroy_trampoline(cpb_frame *frame)
{
    cpb_trampoline_destroy((cpb_trampoline *)(void *)frame);
}

CPB_NOINLINE cpb_trampoline *
cpb_trampoline_create(const cpb_launch_params *params)
{
    size_t size = sizeof(cpb_trampoline);
    cpb_trampoline *self = cpb_resource_allocate(params->allocator, size + CPB_FRAME_TRAILER, CPB_DEFAULT_ALIGN);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_frame_store_trailer(self, size, params->allocator);
    cpb_task_init(&self->base, resume_trampoline, destroy_trampoline);
    self->env = (cpb_env){params->executor, params->stop, params->allocator};
    self->guard = params->executor;
    self->references = params->references;
    self->resource = params->allocator;
    self->handler = params->handler;
    self->context = params->context;
    self->invoke = invoke_handler;
    if (self->references != NULL)
        cpb_ref_add(self->references, 1);
    cpb_executor_work_started(&self->guard);
    return self;
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
