#include "rt/op.h"

static void
never_ready(cpb_op *self, cpb_op_result *result)
{
    (void)self;
    (void)result;
}

/* A handler on its way through the scheduler. Operations free their memory before they call the handler. */
typedef struct posted {
    cpb_operation operation;
    cpb_completion_handler handler;
} posted;

static void
complete_posted(void *owner, cpb_operation *operation)
{
    posted *self = (posted *)(void *)operation;
    cpb_completion_handler handler = self->handler;
    cpb_resource_deallocate(handler.allocator, self, sizeof *self, _Alignof(posted));
    if (CPB_LIKELY(owner != NULL))
        cpb_completion_call(&handler, (cpb_payload){0, NULL, 0});
}

static void
initiate_post(cpb_op *op, cpb_completion_handler handler)
{
    (void)op;
    cpb_any_executor executor = handler.executor;
    posted *self = cpb_resource_allocate(handler.allocator, sizeof *self, _Alignof(posted));
    if (CPB_UNLIKELY(self == NULL)) {
        cpb_any_fail(&executor, CPB_E_NO_MEMORY);
        return;
    }
    self->handler = handler;
    self->operation.complete = complete_posted;
    cpb_any_post(&executor, &self->operation);
}

const cpb_op_table cpb_post_table = {never_ready, initiate_post};

typedef struct posted_payload {
    cpb_operation operation;
    cpb_completion_handler handler;
    cpb_payload payload;
} posted_payload;

static void
complete_posted_payload(void *owner, cpb_operation *operation)
{
    posted_payload *self = (posted_payload *)(void *)operation;
    cpb_completion_handler handler = self->handler;
    cpb_payload payload = self->payload;
    cpb_resource_deallocate(handler.allocator, self, sizeof *self, _Alignof(posted_payload));
    if (CPB_LIKELY(owner != NULL))
        cpb_completion_call(&handler, payload);
}

CPB_NOINLINE void
cpb_completion_post(const cpb_completion_handler *handler, cpb_payload payload)
{
    cpb_any_executor executor = handler->executor;
    posted_payload *self = cpb_resource_allocate(handler->allocator, sizeof *self, _Alignof(posted_payload));
    if (CPB_UNLIKELY(self == NULL)) {
        cpb_any_fail(&executor, CPB_E_NO_MEMORY);
        return;
    }
    self->operation.complete = complete_posted_payload;
    self->handler = *handler;
    self->payload = payload;
    cpb_any_post(&executor, &self->operation);
}

CPB_NOINLINE void
cpb_completion_immediate(const cpb_completion_handler *handler, cpb_payload payload)
{
    cpb_completion_handler moved = *handler;
    cpb_immediate *immediate = moved.immediate;
    if (CPB_UNLIKELY(immediate == NULL ||
                     (*immediate != CPB_IMMEDIATE_INITIATING && *immediate != CPB_IMMEDIATE_MAYBE))) {
        cpb_completion_post(&moved, payload);
        return;
    }
    *immediate = CPB_IMMEDIATE_MAYBE;
    cpb_completion_call(&moved, payload);
    if (*immediate != CPB_IMMEDIATE_YES)
        *immediate = CPB_IMMEDIATE_INITIATING;
}
