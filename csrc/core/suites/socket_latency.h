/* socket_latency.h: what the files of the suites socket_latency and local_socket_latency share. */
#ifndef CPB_SUITES_SOCKET_LATENCY_H
#define CPB_SUITES_SOCKET_LATENCY_H

#include "base/clock.h"
#include "base/histogram.h"
#include "rt/net.h"
#include "rt/reactor.h"
#include "rt/task.h"

typedef struct latency_state latency_state;

/* One sequential actor owns both ends of a pair. */
typedef struct latency_actor {
    cpb_op op; /* first */
    cpb_actor actor;
    latency_state *state;
    cpb_socket client, server;
    cpb_pair pair;
    unsigned char *out, *in, *back; /* sent by the client, received by the server, received back by the client */
    uint64_t begin_ns;
    uint64_t ops; /* of the present run */
    cpb_frame *frame;
    unsigned step; /* of a raw actor */
    bool waits, ended;
} latency_actor;

struct latency_state {
    cpb_run *run;
    cpb_reactor *reactor;
    const struct latency_style *style;
    void *raw; /* a raw contender's own */
    unsigned pairs;
    size_t message;
    bool local, lockless;
    uint64_t left;   /* ops that nobody has claimed: a plain integer, one run thread */
    uint64_t failed; /* steps that moved another number of bytes */
    uint64_t expected;
    int status; /* of a raw contender or of a frame without memory */
    cpb_histogram latency;
    cpb_env env;
    cpb_stop_token stop;
    latency_actor *actors;
};

typedef struct latency_style {
    const char *contender;
    cpb_reactor_kind reactor;
    /* Starts an actor; NULL for raw contenders. */
    void (*start)(latency_actor *actor);
    /* Raw: prepares, performs what state->left says, gives back. */
    int (*prepare)(latency_state *state);
    int (*perform)(latency_state *state);
    void (*finish)(latency_state *state);
} latency_style;

void latency_start_callback(latency_actor *actor);
void latency_start_task(latency_actor *actor);
int latency_prepare_epoll(latency_state *state);
int latency_perform_epoll(latency_state *state);
void latency_finish_epoll(latency_state *state);
int latency_prepare_uring(latency_state *state);
int latency_perform_uring(latency_state *state);
void latency_finish_uring(latency_state *state);

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
