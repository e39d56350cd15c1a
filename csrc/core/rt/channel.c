#include "rt/channel.h"

void
cpb_channel_init(cpb_channel *channel, size_t capacity, cpb_any_executor executor)
{
    *channel = (cpb_channel){.capacity = capacity, .executor = executor};
    channel->send_side = capacity > 0 ? CPB_SIDE_BUFFER : CPB_SIDE_BLOCK;
    channel->receive_side = CPB_SIDE_BLOCK;
}

static void
push_waiter(cpb_channel *channel, cpb_channel_op *op)
{
    op->next = NULL;
    if (channel->tail != NULL)
        channel->tail->next = op;
    else
        channel->head = op;
    channel->tail = op;
}

static cpb_channel_op *
pop_waiter(cpb_channel *channel)
{
    cpb_channel_op *op = channel->head;
    channel->head = op->next;
    if (channel->head == NULL)
        channel->tail = NULL;
    return op;
}

void
cpb_channel_destroy(cpb_channel *channel)
{
    while (channel->head != NULL) {
        cpb_channel_op *op = pop_waiter(channel);
        op->act(op, CPB_CHANNEL_DESTROY, (cpb_payload){0, NULL, 0});
    }
}

static inline void
act(cpb_channel_op *op, cpb_channel_action action, cpb_payload payload)
{
    CPB_INDIRECT(op->act)(op, action, payload);
}

static inline void
push_buffer(cpb_channel *channel, cpb_payload payload)
{
    channel->buffer[(channel->first + channel->count) % CPB_CHANNEL_CAPACITY] = payload;
    channel->count++;
}

static inline cpb_payload
pop_buffer(cpb_channel *channel)
{
    cpb_payload payload = channel->buffer[channel->first];
    channel->first = (channel->first + 1) % CPB_CHANNEL_CAPACITY;
    channel->count--;
    return payload;
}

static const cpb_payload sent = {0, NULL, 0};

CPB_NOINLINE void
cpb_channel_send(cpb_channel *channel, cpb_channel_op *op)
{
    switch (channel->send_side) {
    case CPB_SIDE_BLOCK:
        push_waiter(channel, op);
        if (channel->receive_side == CPB_SIDE_BLOCK)
            channel->receive_side = CPB_SIDE_WAITER;
        return;
    case CPB_SIDE_BUFFER:
        push_buffer(channel, op->payload);
        channel->receive_side = CPB_SIDE_BUFFER;
        if (channel->count == channel->capacity)
            channel->send_side = CPB_SIDE_BLOCK;
        act(op, CPB_CHANNEL_IMMEDIATE, sent);
        return;
    case CPB_SIDE_WAITER: {
        cpb_channel_op *receiver = pop_waiter(channel);
        if (channel->head == NULL)
            channel->send_side = channel->capacity > 0 ? CPB_SIDE_BUFFER : CPB_SIDE_BLOCK;
        act(receiver, CPB_CHANNEL_POST, op->payload);
        act(op, CPB_CHANNEL_POST, sent);
        return;
    }
    }
}

CPB_NOINLINE void
cpb_channel_receive(cpb_channel *channel, cpb_channel_op *op)
{
    switch (channel->receive_side) {
    case CPB_SIDE_BLOCK:
        push_waiter(channel, op);
        channel->send_side = CPB_SIDE_WAITER;
        return;
    case CPB_SIDE_BUFFER: {
        cpb_payload payload = pop_buffer(channel);
        if (channel->head != NULL) { /* a send waits for the room */
            cpb_channel_op *sender = pop_waiter(channel);
            push_buffer(channel, sender->payload);
            act(sender, CPB_CHANNEL_POST, sent);
        } else {
            channel->send_side = CPB_SIDE_BUFFER;
            if (channel->count == 0)
                channel->receive_side = CPB_SIDE_BLOCK;
        }
        act(op, CPB_CHANNEL_IMMEDIATE, payload);
        return;
    }
    case CPB_SIDE_WAITER: {
        cpb_channel_op *sender = pop_waiter(channel);
        cpb_payload payload = sender->payload;
        if (channel->head == NULL)
            channel->receive_side = CPB_SIDE_BLOCK;
        act(sender, CPB_CHANNEL_POST, sent);
        act(op, CPB_CHANNEL_POST, payload);
        return;
    }
    }
}

/* Cobalt's handlers. The operation holds a handle that tracks work from its start to its end, as Asio's does. */
typedef struct handler_op {
    cpb_channel_op base;
    cpb_any_executor work;
    cpb_completion_handler handler;
} handler_op;

static void
act_on_handler(cpb_channel_op *base, cpb_channel_action action, cpb_payload payload)
{
    handler_op *self = (handler_op *)(void *)base;
    cpb_any_executor work = self->work;
    cpb_completion_handler handler = self->handler;
    cpb_resource_deallocate(handler.allocator, self, sizeof *self, _Alignof(handler_op));
    if (CPB_LIKELY(action == CPB_CHANNEL_POST))
        cpb_completion_post(&handler, payload);
    else if (action == CPB_CHANNEL_IMMEDIATE)
        cpb_completion_immediate(&handler, payload);
    cpb_any_work_finished(&work);
}

/* NULL when there is no memory; the chain then stands still. */
static inline handler_op *
make_op(const cpb_completion_handler *handler, uint64_t value)
{
    handler_op *self = cpb_resource_allocate(handler->allocator, sizeof *self, _Alignof(handler_op));
    if (CPB_LIKELY(self != NULL)) {
        self->base.act = act_on_handler;
        self->base.payload = (cpb_payload){0, NULL, value};
        self->work = handler->executor;
        self->handler = *handler;
        if (handler->slot.handler == NULL || CPB_LIKELY(cpb_cancel_emplace(handler->slot, self, NULL))) {
            cpb_any_work_started(&self->work);
            return self;
        }
        cpb_resource_deallocate(handler->allocator, self, sizeof *self, _Alignof(handler_op));
    }
    cpb_any_fail(&handler->executor, CPB_E_NO_MEMORY);
    return NULL;
}

static void
never_ready(cpb_op *self, cpb_op_result *result)
{
    (void)self;
    (void)result;
}

static void
initiate_send(cpb_op *op, cpb_completion_handler handler)
{
    cpb_channel_async *self = (cpb_channel_async *)(void *)op;
    handler_op *made = make_op(&handler, self->value);
    if (CPB_LIKELY(made != NULL))
        cpb_channel_send(self->channel, &made->base);
}

static void
initiate_receive(cpb_op *op, cpb_completion_handler handler)
{
    cpb_channel_async *self = (cpb_channel_async *)(void *)op;
    handler_op *made = make_op(&handler, 0);
    if (CPB_LIKELY(made != NULL))
        cpb_channel_receive(self->channel, &made->base);
}

const cpb_op_table cpb_channel_send_table = {never_ready, initiate_send};
const cpb_op_table cpb_channel_receive_table = {never_ready, initiate_receive};
