/* fan_out.h: what the files of suite fan_out share (network specification 2.2). */
#ifndef CPB_SUITES_FAN_OUT_H
#define CPB_SUITES_FAN_OUT_H

#include "suites/net_raw.h"

#define FAN_BYTES 64u
#define FAN_GROUP 4u

typedef struct fan_state fan_state;
typedef struct fan_join fan_join;
typedef struct fan_sub fan_sub;

/* A join: one countdown and one wake-up. The last arrival resumes who waits. */
struct fan_join {
    fan_state *state;
    unsigned left;
    unsigned first, count; /* what it starts: sub-requests, or groups */
    fan_join *above;       /* of a group: its parent; NULL: a parent */
    cpb_frame *frame;      /* of style task: who waits */
};

/* The client end of a pair: a sub-request of 64 bytes and its echo. */
struct fan_sub {
    net_raw raw; /* first */
    cpb_op op;
    cpb_actor actor;
    fan_state *state;
    net_pair *pair;
    fan_join *join;
    cpb_frame *frame;
    bool sending;
    unsigned char buffer[FAN_BYTES];
};

/* The server end: an endless echo. */
typedef struct fan_echo {
    net_raw raw; /* first */
    cpb_op op;
    cpb_actor actor;
    fan_state *state;
    net_pair *pair;
    cpb_frame *frame;
    bool sending;
    unsigned char buffer[FAN_BYTES];
} fan_echo;

/* The ends of pair i lie side by side: 2i the echo, 2i + 1 the sub-request. */
typedef union fan_end {
    net_raw raw;
    fan_echo echo;
    fan_sub sub;
} fan_end;

struct fan_state {
    net_base base; /* first */
    fan_end *ends;
    fan_join *parents, *groups; /* no groups: NULL */
    unsigned parent_count, group_count;
    uint64_t left;         /* rounds that nobody has claimed */
    unsigned active;       /* parents that have not ended; the last one stops the loop */
    uint64_t rounds, subs; /* done in the present run */
    uint64_t failed, expected, done;
    net_raw_kernel kernel;
};

static inline fan_sub *
fan_sub_at(fan_state *state, unsigned pair)
{
    return &state->ends[2 * pair + 1].sub;
}

static inline fan_echo *
fan_echo_at(fan_state *state, unsigned pair)
{
    return &state->ends[2 * pair].echo;
}

void fan_start_echo_callback(fan_echo *echo);
void fan_start_echo_task(fan_echo *echo);
/* Start a parent, on the loop. */
void fan_start_callback(fan_join *parent);
void fan_start_task(fan_join *parent);
int fan_prepare_raw(fan_state *state);
int fan_perform_raw(fan_state *state);

/* The top of a round: claims it and sets up the countdowns. */
static inline bool
fan_claim(fan_join *parent)
{
    fan_state *state = parent->state;
    if (state->left == 0)
        return false;
    state->left--;
    parent->left = parent->count;
    return true;
}

/* True when it was the last one. */
static inline bool
fan_arrive(fan_join *join)
{
    return --join->left == 0;
}

#endif
