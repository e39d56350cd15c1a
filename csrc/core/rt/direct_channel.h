/* direct_channel.h: Cobalt's own channel of nothing (channel<void>, specification D.5).
 *
 * Reads and writes are awaitables in the frames of their coroutines, linked into the channel's lists when they have to
 * wait: no operation object, no allocation. Whoever finds a partner waiting marks it "direct", posts itself to the
 * executor and transfers to the partner. */
#ifndef CPB_RT_DIRECT_CHANNEL_H
#define CPB_RT_DIRECT_CHANNEL_H

#include "rt/op.h"

typedef struct cpb_direct_link cpb_direct_link;
struct cpb_direct_link {
    cpb_direct_link *next, *previous;
};

typedef struct cpb_direct_channel {
    size_t limit;
    size_t count;
    bool closed;
    cpb_direct_link reads, writes; /* heads of circular lists */
    cpb_any_executor executor;
} cpb_direct_channel;

/* A read or a write. */
typedef struct cpb_direct_op {
    cpb_direct_link link; /* first */
    cpb_direct_channel *channel;
    cpb_frame *awaited_from;
    cpb_cancel_slot slot;
    bool cancelled, direct;
} cpb_direct_op;

void cpb_direct_channel_init(cpb_direct_channel *channel, size_t limit, cpb_any_executor executor);

static inline void
cpb_direct_op_init(cpb_direct_op *op, cpb_direct_channel *channel)
{
    op->channel = channel;
    op->awaited_from = NULL;
    op->slot.handler = NULL;
    op->cancelled = false;
    op->direct = false;
}

/* The three steps of an await. suspend answers who runs next, NULL for the scheduler; resume answers false when the
 * operation failed. */
bool cpb_direct_read_ready(cpb_direct_op *op);
cpb_frame *cpb_direct_read_suspend(cpb_direct_op *op, cpb_promise *promise);
bool cpb_direct_read_resume(cpb_direct_op *op);
bool cpb_direct_write_ready(cpb_direct_op *op);
cpb_frame *cpb_direct_write_suspend(cpb_direct_op *op, cpb_promise *promise);
bool cpb_direct_write_resume(cpb_direct_op *op);

#endif
