#include "rt/gather.h"

/* A fork's frame lies in a monotonic resource: its end frees nothing. */
static void
destroy_fork(cpb_frame *frame)
{
    (void)frame;
}

CPB_NOINLINE cpb_fork *
cpb_fork_make(cpb_gather *gather, unsigned branch, cpb_frame *(*resume)(cpb_frame *))
{
    CPB_COUNT(CPB_RESOURCE_ALLOCS);
    cpb_fork *self = cpb_pmr_monotonic_allocate(&gather->resource, sizeof *self, CPB_DEFAULT_ALIGN);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    self->promise.frame = (cpb_frame){resume, destroy_fork, 0};
    self->promise.continuation = NULL;
    self->promise.executor = &gather->executor;
    self->promise.slot.handler = NULL;
    self->gather = gather;
    self->branch = branch;
    self->done = false;
    gather->use_count++;
    return self;
}

CPB_NOINLINE bool
cpb_gather_ready(cpb_gather *gather, const cpb_promise *promise)
{
    while (gather->started < CPB_GATHER_BRANCHES) {
        unsigned branch = gather->started++;
        gather->last_forked = CPB_INDIRECT(gather->ramps[branch])(gather, branch);
        if (CPB_UNLIKELY(gather->last_forked == NULL)) {
            cpb_any_fail(promise->executor, CPB_E_NO_MEMORY);
            return false;
        }
        if (!gather->last_forked->done)
            return false;
    }
    return true;
}

CPB_NOINLINE bool
cpb_gather_suspend(cpb_gather *gather, cpb_promise *promise)
{
    if (CPB_UNLIKELY(gather->last_forked == NULL))
        return true;
    gather->executor = *promise->executor;
    gather->wired = true;
    cpb_frame_drive(&gather->last_forked->promise.frame);
    while (gather->started < CPB_GATHER_BRANCHES) {
        unsigned branch = gather->started++;
        if (CPB_UNLIKELY(CPB_INDIRECT(gather->ramps[branch])(gather, branch) == NULL)) {
            cpb_any_fail(promise->executor, CPB_E_NO_MEMORY);
            return true;
        }
    }
    if (gather->use_count == 0)
        return false;
    gather->parent = &promise->frame;
    return true;
}
