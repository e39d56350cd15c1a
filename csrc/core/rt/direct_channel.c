#include "rt/direct_channel.h"

void
cpb_direct_channel_init(cpb_direct_channel *channel, size_t limit, cpb_any_executor executor)
{
    *channel = (cpb_direct_channel){.limit = limit, .executor = executor};
    channel->reads.next = channel->reads.previous = &channel->reads;
    channel->writes.next = channel->writes.previous = &channel->writes;
}

static inline void
push(cpb_direct_link *list, cpb_direct_link *link)
{
    link->next = list;
    link->previous = list->previous;
    list->previous->next = link;
    list->previous = link;
}

/* The first operation, unlinked; NULL when none waits. */
static inline cpb_direct_op *
pop(cpb_direct_link *list)
{
    cpb_direct_link *link = list->next;
    if (link == list)
        return NULL;
    list->next = link->next;
    link->next->previous = list;
    return (cpb_direct_op *)(void *)link;
}

/* A coroutine's handle on its way through the scheduler. */
typedef struct posted_frame {
    cpb_operation operation;
    cpb_frame *frame;
} posted_frame;

static void
complete_posted_frame(void *owner, cpb_operation *operation)
{
    posted_frame *self = (posted_frame *)(void *)operation;
    cpb_frame *frame = self->frame;
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, self, sizeof *self);
    if (CPB_LIKELY(owner != NULL))
        cpb_frame_drive(frame);
}

CPB_NOINLINE static void
post_frame(const cpb_any_executor *on, cpb_frame *frame)
{
    cpb_any_executor executor = *on;
    posted_frame *self = cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, sizeof *self);
    if (CPB_UNLIKELY(self == NULL)) {
        cpb_any_fail(&executor, CPB_E_NO_MEMORY);
        return;
    }
    self->operation.complete = complete_posted_frame;
    self->frame = frame;
    cpb_any_post(&executor, &self->operation);
}

/* Connects the slot; false when there is no memory. */
static inline bool
connect_slot(cpb_direct_op *op, cpb_promise *promise)
{
    op->slot = promise->slot;
    if (op->slot.handler == NULL || CPB_LIKELY(cpb_cancel_emplace(op->slot, op, NULL)))
        return true;
    cpb_any_fail(promise->executor, CPB_E_NO_MEMORY);
    return false;
}

/* The half that reads and writes share: waits in `own`, or meets the first of `partners`. */
static inline cpb_frame *
suspend(cpb_direct_op *op, cpb_promise *promise, cpb_direct_link *own, cpb_direct_link *partners)
{
    if (CPB_UNLIKELY(op->cancelled))
        return &promise->frame;
    if (CPB_UNLIKELY(!connect_slot(op, promise)))
        return NULL;
    op->awaited_from = &promise->frame;
    cpb_direct_op *partner = pop(partners);
    if (partner == NULL) {
        push(own, &op->link);
        return NULL;
    }
    cpb_cancel_clear(op->slot);
    partner->direct = true;
    op->direct = true;
    post_frame(&op->channel->executor, op->awaited_from);
    cpb_frame *next = partner->awaited_from;
    partner->awaited_from = NULL;
    return next;
}

/* The end that they share: a partner that waits and could go on now is posted. */
static inline bool
finish(cpb_direct_op *op, cpb_direct_link *partners, bool (*ready)(cpb_direct_op *))
{
    cpb_cancel_clear(op->slot);
    if (CPB_UNLIKELY(op->cancelled) || CPB_UNLIKELY(op->channel->closed && !op->direct))
        return false;
    if (CPB_UNLIKELY(partners->next != partners) && ready((cpb_direct_op *)(void *)partners->next)) {
        cpb_direct_op *partner = pop(partners);
        post_frame(&op->channel->executor, partner->awaited_from);
    }
    return true;
}

CPB_NOINLINE bool
cpb_direct_read_ready(cpb_direct_op *op)
{
    return op->channel->count > 0 || op->channel->closed;
}

CPB_NOINLINE bool
cpb_direct_write_ready(cpb_direct_op *op)
{
    return op->channel->count < op->channel->limit || op->channel->closed;
}

CPB_NOINLINE cpb_frame *
cpb_direct_read_suspend(cpb_direct_op *op, cpb_promise *promise)
{
    return suspend(op, promise, &op->channel->reads, &op->channel->writes);
}

CPB_NOINLINE cpb_frame *
cpb_direct_write_suspend(cpb_direct_op *op, cpb_promise *promise)
{
    return suspend(op, promise, &op->channel->writes, &op->channel->reads);
}

CPB_NOINLINE bool
cpb_direct_read_resume(cpb_direct_op *op)
{
    if (!op->direct && op->channel->count > 0)
        op->channel->count--;
    return finish(op, &op->channel->writes, cpb_direct_write_ready);
}

CPB_NOINLINE bool
cpb_direct_write_resume(cpb_direct_op *op)
{
    if (!op->direct && op->channel->count < op->channel->limit)
        op->channel->count++;
    return finish(op, &op->channel->reads, cpb_direct_read_ready);
}
