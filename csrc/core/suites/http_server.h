/* http_server.h: what the files of suite http_server share (network specification 2.3): the messages, the string that a
 * message is read into, the ends of a connection. */
#ifndef CPB_SUITES_HTTP_SERVER_H
#define CPB_SUITES_HTTP_SERVER_H

#include "suites/net_raw.h"

#define HTTP_REQUEST_BYTES 62u
#define HTTP_RESPONSE_BYTES 52u

typedef struct http_state http_state;

/* A string that grows: what has been read and not been consumed. */
typedef struct http_string {
    char *data;
    size_t size, capacity;
} http_string;

/* One end of a connection: a client sends a request, reads until the header's end and takes the body; a server answers
 * whatever ends with a blank line. Two actors of a pair lie side by side: 2i the server, 2i + 1 the client. */
typedef struct http_actor {
    net_raw raw; /* first */
    cpb_op op;
    cpb_actor actor;
    http_state *state;
    cpb_socket *socket;
    int fd;
    bool is_client, sending;
    http_string text;
    uint64_t ops; /* of the present run; clients only */
    cpb_frame *frame;
} http_actor;

struct http_state {
    net_base base; /* first */
    http_actor *actors;
    bool shared;              /* several run threads: the countdown and the clients' number are atomic */
    _Atomic(int64_t) left;    /* ops that nobody has claimed */
    _Atomic(unsigned) active; /* clients that have not ended; the last one stops the loop */
    _Atomic(uint64_t) failed;
    uint64_t expected, answered;
    net_raw_kernel kernel;
    unsigned running; /* raw clients that have not ended */
};

extern const char http_request[HTTP_REQUEST_BYTES + 1], http_response[HTTP_RESPONSE_BYTES + 1];

void http_start_callback(http_actor *actor);
void http_start_task(http_actor *actor);
int http_perform_raw(http_state *state);
int http_prepare_raw(http_state *state);

/* Claims an op for a client. */
static inline bool
http_claim(http_state *state)
{
    if (CPB_LIKELY(!state->shared)) {
        int64_t left = atomic_load_explicit(&state->left, memory_order_relaxed);
        atomic_store_explicit(&state->left, left - 1, memory_order_relaxed);
        return left > 0;
    }
    return atomic_fetch_sub_explicit(&state->left, 1, memory_order_relaxed) > 0;
}

/* A client has ended; true for the last one. */
static inline bool
http_last(http_state *state)
{
    return atomic_fetch_sub_explicit(&state->active, 1, memory_order_acq_rel) == 1;
}

/* Room for the next read; NULL when there is no memory. Stores its size. */
void *http_room(http_string *text, size_t *size);

/* Takes `moved` more bytes. True: a whole message is there; its length is in `*length`. A response's length is its
 * header and what Content-Length says, a request's only its header. */
bool http_take(http_actor *actor, size_t moved, size_t *length);

/* Erases a consumed message. */
void http_erase(http_string *text, size_t length);

#endif
