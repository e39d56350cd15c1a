/* accept_churn.h: what the files of suite accept_churn share (network specification 2.1). */
#ifndef CPB_SUITES_ACCEPT_CHURN_H
#define CPB_SUITES_ACCEPT_CHURN_H

#include "suites/net_raw.h"

typedef struct churn_state churn_state;
typedef struct churn_loop churn_loop;

/* A client whose connect is outstanding; the server end that was accepted. */
typedef struct churn_link {
    cpb_op op; /* the connect's; first */
    churn_loop *loop;
    cpb_socket client, server;
    cpb_frame *frame;
} churn_link;

/* One loop with its own listener: cycles of one connection, or bursts of many. */
struct churn_loop {
    cpb_op op; /* accept, and the byte's write and read; first */
    cpb_actor actor;
    churn_state *state;
    int listener_fd;
    struct sockaddr_in address;
    cpb_socket listener;
    churn_link *links; /* of the present op: `state->burst`, or one */
    unsigned pending;  /* connects and accepts of the present op that have not completed */
    unsigned accepted;
    uint64_t cycles; /* of the present run */
    unsigned char sent, received;
    cpb_frame *frame;
    bool ended;
};

struct churn_state {
    net_base base; /* first */
    churn_loop *loops;
    unsigned loop_count;
    unsigned burst; /* connections of an op; 0: sequential, one that also carries a byte */
    uint64_t left, failed, expected, done;
};

void churn_start_callback(churn_loop *loop);
void churn_start_task(churn_loop *loop);
int churn_perform_raw(churn_state *state);

static inline bool
churn_claim(churn_state *state)
{
    if (state->left == 0)
        return false;
    state->left--;
    return true;
}

/* A client socket with the suite's options, as the back end wants it; -1, counted as a failure. */
int churn_client(churn_state *state);

/* Makes and opens the clients of an op, each with its connect prepared. False, with all closed and counted as a
 * failure, when one was refused. */
bool churn_open(churn_loop *loop);

/* Takes an accepted descriptor into the context as the next link's server. */
bool churn_accepted(churn_loop *loop, int64_t fd);

/* Closes all clients in order, then all servers, and frees the links. */
void churn_close(churn_loop *loop);

#endif
