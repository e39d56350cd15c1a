/* socket_latency.h: what the files of the suites socket_latency and local_socket_latency share. */
#ifndef CPB_SUITES_SOCKET_LATENCY_H
#define CPB_SUITES_SOCKET_LATENCY_H

#include "suites/net_raw.h"

typedef struct latency_state latency_state;

/* One sequential actor owns both ends of a pair. */
typedef struct latency_actor {
    net_raw raw; /* first */
    cpb_op op;
    cpb_actor actor;
    latency_state *state;
    net_pair *pair;
    unsigned char *out, *in, *back; /* sent by the client, received by the server, received back by the client */
    uint64_t begin_ns;
    uint64_t ops; /* of the present run */
    cpb_frame *frame;
    unsigned step; /* of a raw actor */
} latency_actor;

struct latency_state {
    net_base base; /* first */
    size_t message;
    uint64_t left;   /* ops that nobody has claimed: a plain integer, one run thread */
    uint64_t failed; /* steps that moved another number of bytes */
    uint64_t expected;
    cpb_histogram latency;
    latency_actor *actors;
    unsigned char *buffers;
    net_raw_kernel kernel;
    unsigned running; /* raw actors that have not ended */
};

void latency_start_callback(latency_actor *actor);
void latency_start_task(latency_actor *actor);
int latency_prepare_raw(latency_state *state);
int latency_perform_raw(latency_state *state);

/* The top of an op: claims it and reads the clock. False: all are claimed. */
static inline bool
latency_claim(latency_actor *self)
{
    latency_state *state = self->state;
    if (state->left == 0)
        return false;
    state->left--;
    self->begin_ns = cpb_clock_ns();
    return true;
}

/* The end of an op: the second clock read, in all contenders. */
static inline void
latency_record(latency_actor *self)
{
    cpb_histogram_record(&self->state->latency, cpb_clock_ns() - self->begin_ns);
    self->ops++;
}

static inline void
latency_check(latency_actor *self, int64_t moved)
{
    if (CPB_UNLIKELY(moved != (int64_t)self->state->message))
        self->state->failed++;
}

#endif
