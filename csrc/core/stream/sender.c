#include "stream/sender.h"

#include <string.h>

#include "alloc/counting.h"
#include "base/thread.h"

/* stdexec-like: starts_on(pool scheduler, just(0)): four words of scheduler and a value. */
typedef struct sx_payload {
    cpb_pool *pool;
    void *scheduler[3];
    size_t value;
} sx_payload;
_Static_assert(sizeof(sx_payload) > sizeof(((cpb_sx_sender *)NULL)->store), "must not fit the sender's inline store");

typedef struct sx_operation {
    cpb_work work;
    cpb_pool *pool;
    cpb_set_value set_value;
    void *context;
    sx_payload payload;
} sx_operation;
_Static_assert(sizeof(sx_operation) > sizeof(((cpb_sx_operation *)NULL)->store), "must not fit the op's inline store");

static void
sx_execute(cpb_work *work)
{
    sx_operation *self = CPB_CONTAINER_OF(work, sx_operation, work);
    CPB_INDIRECT(self->set_value)(self->context, self->payload.value);
}

static void
sx_operation_start(cpb_sx_operation *holder)
{
    sx_operation *self = holder->store.heap;
    cpb_pool_push(self->pool, CPB_POOL_STEAL, &self->work);
}

static void
sx_operation_destroy(cpb_sx_operation *holder)
{
    cpb_counting_delete(holder->store.heap);
}

static const cpb_sx_operation_table sx_operation_table = {sx_operation_start, sx_operation_destroy};

static bool
sx_connect(cpb_sx_sender *sender, cpb_set_value set_value, void *context, cpb_sx_operation *out)
{
    sx_operation *self = cpb_counting_new(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return false;
    memcpy(&self->payload, sender->store.heap, sizeof self->payload);
    self->work = (cpb_work){sx_execute, NULL};
    self->pool = self->payload.pool;
    self->set_value = set_value;
    self->context = context;
    out->table = &sx_operation_table;
    out->store.heap = self;
    return true;
}

static void
sx_sender_destroy(cpb_sx_sender *sender)
{
    cpb_counting_delete(sender->store.heap);
}

static const cpb_sx_sender_table sx_sender_table = {sx_connect, sx_sender_destroy};

static bool
read_stdexec(cpb_sender_stream *self, cpb_sx_sender *out)
{
    sx_payload *payload = cpb_counting_new(sizeof *payload);
    if (CPB_UNLIKELY(payload == NULL))
        return false;
    *payload =
        (sx_payload){.pool = self->model, .scheduler = {self, cpb_pool_ask_scheduler(self->model), NULL}, .value = 0};
    out->table = &sx_sender_table;
    out->store.heap = payload;
    return true;
}

/* Beman-like: 64 bytes relocated by memcpy, op from the counting resource. */
static void
bx_execute(cpb_work *work)
{
    cpb_bx_operation *self = CPB_CONTAINER_OF(work, cpb_bx_operation, work);
    CPB_INDIRECT(self->set_value)(self->context, 0);
}

static void
bx_start(cpb_bx_operation *self)
{
    cpb_pool_push(self->pool, CPB_POOL_MUTEX, &self->work);
}

static void
bx_destroy(cpb_bx_operation *self)
{
    cpb_resource_deallocate(cpb_counting_resource(), self, sizeof *self, CPB_DEFAULT_ALIGN);
}

static const cpb_bx_operation_table bx_table = {bx_start, bx_destroy};

static cpb_bx_operation *
bx_factory(const unsigned char *bytes, cpb_set_value set_value, void *context)
{
    cpb_bx_operation *self = cpb_resource_allocate(cpb_counting_resource(), sizeof *self, CPB_DEFAULT_ALIGN);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_pool *pool;
    memcpy(&pool, bytes, sizeof pool);
    *self = (cpb_bx_operation){&bx_table, {bx_execute, NULL}, pool, set_value, context};
    return self;
}

static bool
read_beman(cpb_sender_stream *self, cpb_bx_sender *out)
{
    out->factory = bx_factory;
    memcpy(out->bytes, &self->model, sizeof self->model);
    return true;
}

static const cpb_sender_stream_table model_table = {read_stdexec, read_beman};

/* The wrapper: one more indirect call, the same any-sender. */
static bool
wrapper_read_stdexec(cpb_sender_stream *self, cpb_sx_sender *out)
{
    cpb_sender_stream *model = self->model;
    return CPB_INDIRECT(model->table->read_stdexec)(model, out);
}

static bool
wrapper_read_beman(cpb_sender_stream *self, cpb_bx_sender *out)
{
    cpb_sender_stream *model = self->model;
    return CPB_INDIRECT(model->table->read_beman)(model, out);
}

static const cpb_sender_stream_table wrapper_table = {wrapper_read_stdexec, wrapper_read_beman};

void
cpb_sender_streams_init(cpb_sender_streams *streams, cpb_pool *pool)
{
    streams->model = (cpb_sender_stream){&model_table, pool};
    streams->wrapper = (cpb_sender_stream){&wrapper_table, &streams->model};
    streams->abstract = cpb_launder(&streams->model);
    streams->erased = cpb_launder(&streams->wrapper);
}

/* The erased scheduler. */
static void
schedule_execute(cpb_work *work)
{
    cpb_schedule_operation *self = CPB_CONTAINER_OF(work, cpb_schedule_operation, work);
    CPB_INDIRECT(self->set_value)(self->context, 0);
}

static void
schedule_start(cpb_schedule_operation *self)
{
    cpb_pool *pool = self->scheduler->pool;
    cpb_pool_push(pool, pool->kind, &self->work);
}

static void
schedule_destroy(cpb_schedule_operation *self)
{
    cpb_counting_delete(self);
}

static const cpb_schedule_operation_table schedule_table = {schedule_start, schedule_destroy};

static cpb_schedule_operation *
schedule_connect(const cpb_schedule_sender *sender, cpb_set_value set_value, void *context)
{
    cpb_schedule_operation *self = cpb_counting_new(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    self->table = &schedule_table;
    self->work = (cpb_work){schedule_execute, NULL};
    self->scheduler = sender->scheduler;
    self->set_value = set_value;
    self->context = context;
    memset(self->environment, 0, sizeof self->environment);
    return self;
}

static void
scheduler_copy(cpb_any_scheduler *self)
{
    cpb_ref_add(&self->references, 1);
}

static void
scheduler_drop(cpb_any_scheduler *self)
{
    cpb_ref_add(&self->references, -1);
}

static void
scheduler_schedule(cpb_any_scheduler *self, cpb_schedule_sender *out)
{
    *out = (cpb_schedule_sender){schedule_connect, self};
}

static const cpb_any_scheduler_table scheduler_table = {scheduler_copy, scheduler_drop, scheduler_schedule};

void
cpb_any_scheduler_init(cpb_any_scheduler *scheduler, cpb_pool *pool)
{
    *scheduler = (cpb_any_scheduler){&scheduler_table, 1, pool};
}

/* The adapter. */
void
cpb_adapter_init(cpb_adapter *adapter, cpb_pool *pool)
{
    memset(adapter, 0, sizeof *adapter);
    adapter->pool = pool;
}

CPB_NOINLINE static cpb_posted *
take_spare(cpb_adapter *adapter)
{
    cpb_posted *self = &adapter->spares[adapter->next_spare++ % 2];
    adapter->failed = true;
    self->spare_of = adapter;
    return self;
}

static cpb_posted *
make_posted(cpb_adapter *adapter, cpb_continuation *continuation, void (*execute)(cpb_work *))
{
    cpb_posted *self = cpb_counting_new(sizeof *self);
    if (CPB_LIKELY(self != NULL))
        self->spare_of = NULL;
    else
        self = take_spare(adapter);
    self->work = (cpb_work){execute, NULL};
    self->frame = continuation->frame;
    return self;
}

static void
free_posted(cpb_posted *self)
{
    if (CPB_LIKELY(self->spare_of == NULL))
        cpb_counting_delete(self);
}

/* The resumed continuation may end the chain and its adapter, so a spare op is not looked at again. */
static void
execute_then_free(cpb_work *work)
{
    cpb_posted *self = CPB_CONTAINER_OF(work, cpb_posted, work);
    bool spare = self->spare_of != NULL;
    cpb_frame_drive(self->frame);
    if (CPB_LIKELY(!spare))
        cpb_counting_delete(self);
}

static void
free_then_execute(cpb_work *work)
{
    cpb_posted *self = CPB_CONTAINER_OF(work, cpb_posted, work);
    cpb_frame *frame = self->frame;
    free_posted(self);
    cpb_frame_drive(frame);
}

static void
sx_post(void *object, cpb_continuation *continuation)
{
    cpb_adapter *adapter = object;
    cpb_pool_push_steal(adapter->pool, &make_posted(adapter, continuation, execute_then_free)->work);
}

static void
bx_post(void *object, cpb_continuation *continuation)
{
    cpb_adapter *adapter = object;
    cpb_pool_push_mutex(adapter->pool, &make_posted(adapter, continuation, free_then_execute)->work);
}

static cpb_frame *
adapter_dispatch(void *object, cpb_continuation *continuation)
{
    (void)object;
    return continuation->frame;
}

static const cpb_executor_table sx_adapter = {.dispatch = adapter_dispatch, .post = sx_post};
static const cpb_executor_table bx_adapter = {.dispatch = adapter_dispatch, .post = bx_post};

cpb_executor
cpb_adapter_executor(cpb_sender_family family, cpb_adapter *adapter)
{
    return (cpb_executor){family == CPB_STDEXEC ? &sx_adapter : &bx_adapter, cpb_launder(adapter)};
}
