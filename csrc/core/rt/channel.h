/* channel.h: Asio's channel (experimental::channel without a lock), generic over its handlers (specification D.3, D.4).
 *
 * A send or receive is an operation object that its initiator made in the memory associated with its handler. Room or
 * data in the buffer completes it immediately, a waiting partner completes both by posted handlers, else it waits. What
 * completing means depends on the handler, so operations act through a function. */
#ifndef CPB_RT_CHANNEL_H
#define CPB_RT_CHANNEL_H

#include "rt/op.h"

typedef enum cpb_channel_action {
    CPB_CHANNEL_DESTROY,   /* free the operation, call nobody */
    CPB_CHANNEL_IMMEDIATE, /* completed inside its initiation */
    CPB_CHANNEL_POST       /* completed by its partner: post the handler */
} cpb_channel_action;

typedef struct cpb_channel_op cpb_channel_op;
struct cpb_channel_op {
    cpb_channel_op *next;
    /* Moves the handler out, frees the operation, then does what `action` says with the payload. */
    void (*act)(cpb_channel_op *self, cpb_channel_action action, cpb_payload payload);
    cpb_payload payload; /* what a send carries */
};

#define CPB_CHANNEL_CAPACITY 1u

typedef enum cpb_channel_side { CPB_SIDE_BLOCK, CPB_SIDE_BUFFER, CPB_SIDE_WAITER } cpb_channel_side;

typedef struct cpb_channel {
    size_t capacity;
    size_t count, first;
    cpb_payload buffer[CPB_CHANNEL_CAPACITY];
    cpb_channel_side send_side, receive_side; /* what a send, a receive would meet */
    cpb_channel_op *head, *tail;              /* waiting operations, all of one kind */
    cpb_any_executor executor;
} cpb_channel;

/* `capacity` is 0 or 1. */
void cpb_channel_init(cpb_channel *channel, size_t capacity, cpb_any_executor executor);

/* Destroys what still waits. */
void cpb_channel_destroy(cpb_channel *channel);

void cpb_channel_send(cpb_channel *channel, cpb_channel_op *op);
void cpb_channel_receive(cpb_channel *channel, cpb_channel_op *op);

/* A send or a receive as an operation for Cobalt's awaitables. */
typedef struct cpb_channel_async {
    cpb_op op; /* first */
    cpb_channel *channel;
    uint64_t value; /* what a send carries */
} cpb_channel_async;

extern const cpb_op_table cpb_channel_send_table;
extern const cpb_op_table cpb_channel_receive_table;

#endif
