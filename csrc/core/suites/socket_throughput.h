/* socket_throughput.h: what the files of the suites socket_throughput and local_socket_throughput share. */
#ifndef CPB_SUITES_SOCKET_THROUGHPUT_H
#define CPB_SUITES_SOCKET_THROUGHPUT_H

#include "suites/net_raw.h"

typedef struct throughput_state throughput_state;

/* One end of a direction: a writer sends, a reader receives. */
typedef struct throughput_actor {
    net_raw raw; /* first */
    cpb_op op;
    cpb_actor actor;
    throughput_state *state;
    cpb_socket *socket;
    int fd;
    unsigned char *buffer; /* of one chunk */
    uint64_t left;         /* bytes of the present run */
    cpb_frame *frame;
    bool writes;
} throughput_actor;

struct throughput_state {
    net_base base; /* first */
    size_t chunk;
    unsigned directions; /* each has a writer and a reader: actors 2d and 2d + 1 */
    throughput_actor *actors;
    unsigned char *buffers;
    _Atomic(uint64_t) failed;
    uint64_t expected, received; /* bytes; the second is added up after each run */
    net_raw_kernel kernel;
    unsigned running; /* raw actors that have not ended */
};

/* Starts an actor that has bytes left. */
void throughput_start_callback(throughput_actor *actor);
void throughput_start_task(throughput_actor *actor);

int throughput_prepare_raw(throughput_state *state);
int throughput_perform_raw(throughput_state *state);

/* The next operation: a write of at most a chunk, a read of at most a chunk. */
static inline void
throughput_prepare(throughput_actor *self)
{
    size_t chunk = self->state->chunk;
    size_t size = self->left < chunk ? (size_t)self->left : chunk;
    cpb_op_prepare(&self->op, self->writes ? CPB_OP_WRITE : CPB_OP_READ, self->socket, self->buffer, size, false);
}

/* Takes what moved off what is left. False: the actor has ended, because all is done or because of an error. */
static inline bool
throughput_account(throughput_actor *self, int64_t moved)
{
    if (CPB_UNLIKELY(moved <= 0)) {
        self->state->failed++;
        return false;
    }
    self->left -= (uint64_t)moved;
    return self->left > 0;
}

#endif
