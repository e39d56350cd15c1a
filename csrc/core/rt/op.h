/* op.h: Cobalt's asynchronous operation and the awaitable that `use_op` makes of it (specification D.2).
 *
 * The awaitable lies in its coroutine's frame: a result slot, 4096 bytes that are never cleared and a small-buffer
 * resource over them, a completed-immediately flag, an exception slot. To await it calls the operation's ready and
 * initiate through its table; initiate gets a completion handler of 88 bytes by value, moves it into what it queues,
 * and out again before it runs. */
#ifndef CPB_RT_OP_H
#define CPB_RT_OP_H

#include "alloc/sbo.h"
#include "alloc/std_resource.h"
#include "rt/cancel.h"
#include "rt/frame.h"
#include "rt/scheduler.h"

/* What every coroutine of Cobalt's model begins with. */
typedef struct cpb_promise {
    cpb_frame frame;
    cpb_frame *continuation; /* who runs after this coroutine */
    const cpb_any_executor *executor;
    cpb_cancel_slot slot;
} cpb_promise;

/* What an operation completes with: an error code of two words, and a value. */
typedef struct cpb_payload {
    int error;
    const void *category;
    uint64_t value;
} cpb_payload;

/* An optional result. */
typedef struct cpb_op_result {
    bool engaged;
    cpb_payload value;
} cpb_op_result;

/* Whether an operation completed inside its initiation. */
typedef enum cpb_immediate {
    CPB_IMMEDIATE_NO,
    CPB_IMMEDIATE_MAYBE,
    CPB_IMMEDIATE_YES,
    CPB_IMMEDIATE_INITIATING
} cpb_immediate;

typedef struct cpb_completion_handler {
    cpb_cancel_slot slot;
    cpb_any_executor executor;
    cpb_resource *allocator; /* the associated allocator: the awaitable's buffer */
    cpb_immediate *immediate;
    cpb_frame *self;
    cpb_op_result *result;
} cpb_completion_handler;

typedef struct cpb_op cpb_op;

typedef struct cpb_op_table {
    void (*ready)(cpb_op *self, cpb_op_result *result);
    void (*initiate)(cpb_op *self, cpb_completion_handler handler);
} cpb_op_table;

struct cpb_op {
    const cpb_op_table *table;
};

#define CPB_OP_BUFFER 4096u

typedef struct cpb_op_awaitable {
    cpb_op *op;
    cpb_op_result result;
    cpb_immediate immediate;
    void *exception;
    cpb_resource *resource;
    cpb_sbo sbo;
    unsigned char buffer[CPB_OP_BUFFER];
} cpb_op_awaitable;

static inline void
cpb_op_awaitable_init(cpb_op_awaitable *awaitable, cpb_op *op)
{
    awaitable->op = op;
    awaitable->result.engaged = false;
    awaitable->immediate = CPB_IMMEDIATE_NO;
    awaitable->exception = NULL;
    cpb_sbo_init(&awaitable->sbo, awaitable->buffer, sizeof awaitable->buffer, cpb_std_resource());
    awaitable->resource = &awaitable->sbo.resource;
}

static inline bool
cpb_op_ready(cpb_op_awaitable *awaitable)
{
    CPB_INDIRECT(awaitable->op->table->ready)(awaitable->op, &awaitable->result);
    return awaitable->result.engaged;
}

/* True when the coroutine has to suspend; false when the operation completed already. */
static inline bool
cpb_op_suspend(cpb_op_awaitable *awaitable, cpb_promise *promise)
{
    awaitable->immediate = CPB_IMMEDIATE_INITIATING;
    cpb_completion_handler handler = {
        .slot = promise->slot,
        .executor = *promise->executor,
        .allocator = awaitable->resource,
        .immediate = &awaitable->immediate,
        .self = &promise->frame,
        .result = &awaitable->result,
    };
    CPB_INDIRECT(awaitable->op->table->initiate)(awaitable->op, handler);
    if (awaitable->immediate == CPB_IMMEDIATE_INITIATING)
        awaitable->immediate = CPB_IMMEDIATE_NO;
    return awaitable->immediate != CPB_IMMEDIATE_YES;
}

/* The result of a completed operation: false when it failed. */
static inline bool
cpb_op_take(cpb_op_awaitable *awaitable, cpb_payload *payload)
{
    *payload = awaitable->result.value;
    return CPB_LIKELY(awaitable->exception == NULL) && CPB_LIKELY(awaitable->result.engaged) && payload->error == 0;
}

/* Calls a handler that was moved out of its operation: stores the result, then resumes the coroutine, unless that has
 * not suspended yet. */
static inline void
cpb_completion_call(cpb_completion_handler *handler, cpb_payload payload)
{
    handler->result->value = payload;
    handler->result->engaged = true;
    if (handler->immediate != NULL && *handler->immediate == CPB_IMMEDIATE_MAYBE) {
        *handler->immediate = CPB_IMMEDIATE_YES;
        return;
    }
    cpb_frame_drive(handler->self);
}

/* Moves a handler with its payload into an operation from its associated allocator and posts that. */
void cpb_completion_post(const cpb_completion_handler *handler, cpb_payload payload);

/* The immediate executor associated with a handler: runs the handler inside its initiation, posts it elsewhere. */
void cpb_completion_immediate(const cpb_completion_handler *handler, cpb_payload payload);

/* post: an operation that only goes through the scheduler. */
extern const cpb_op_table cpb_post_table;

/* The memory of a task's frame comes from the thread's frame resource, through its table, with the resource's name
 * behind the frame. NULL when there is none. */
static inline void *
cpb_promise_alloc(size_t size)
{
    cpb_resource *owner = cpb_frame_allocator;
    void *memory = cpb_resource_allocate(owner, size + CPB_FRAME_TRAILER, CPB_DEFAULT_ALIGN);
    if (CPB_LIKELY(memory != NULL))
        cpb_frame_store_trailer(memory, size, owner);
    return memory;
}

static inline void
cpb_promise_free(void *memory, size_t size)
{
    cpb_resource_deallocate(cpb_frame_load_trailer(memory, size), memory, size + CPB_FRAME_TRAILER, CPB_DEFAULT_ALIGN);
}

#endif
