/* reactor.h: an I/O context: operations on sockets, timers and posted work, completed by a run loop (network
 * specification 1.2; design of the contract in docs/network.md).
 *
 * One contract over three back ends. epoll and poll try an operation's system call first and wait for readiness only
 * when it would block; io_uring submits it. What an operation did is in `result`, whoever completed it.
 *
 * Inline completion. An operation that succeeds at once completes in its starter: cpb_op_start answers true and the
 * caller goes on. An actor, a sequential chain of operations, may do so CPB_INLINE_BUDGET times per wake-up; then the
 * operation is queued like any other and the loop polls once before it goes on. Without that rule a try-first runtime
 * would run one actor to its end before the next one starts.
 *
 * Locking. A locked context may be run by several threads and posted to from any; every queue operation takes its
 * mutex. A lockless context belongs to one thread and takes none. */
#ifndef CPB_RT_REACTOR_H
#define CPB_RT_REACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/ledger.h"

#define CPB_INLINE_BUDGET 16u

typedef enum cpb_reactor_kind { CPB_REACTOR_EPOLL, CPB_REACTOR_POLL, CPB_REACTOR_URING } cpb_reactor_kind;

typedef struct cpb_reactor cpb_reactor;
typedef struct cpb_socket cpb_socket;
typedef struct cpb_op cpb_op;

typedef enum cpb_op_kind { CPB_OP_POSTED, CPB_OP_READ, CPB_OP_WRITE, CPB_OP_ACCEPT, CPB_OP_CONNECT } cpb_op_kind;

/* What the operations of one sequential chain share. Zeroed by its owner; the loop refills it at every wake-up. */
typedef struct cpb_actor {
    unsigned budget;
} cpb_actor;

/* An operation. Embedded in its owner and valid until it has completed; at most one of a socket's reads (or accepts)
 * and one of its writes (or connects) is outstanding. */
struct cpb_op {
    void (*complete)(cpb_op *self); /* called by the loop, not when the operation completed inline */
    cpb_op *next;                   /* the queue's */
    cpb_socket *socket;
    cpb_actor *actor;
    void *data;     /* buffer; for a connect the address */
    size_t size;    /* its bytes */
    size_t done;    /* bytes moved so far */
    int64_t result; /* bytes, a descriptor (accept), 0 (connect, posted), or -errno. 0 bytes read is the end of file. */
    uint8_t kind;
    bool exact;    /* a composed read or write of exactly `size` bytes; an end of file gives less */
    bool finished; /* `result` stands; otherwise the loop tries (again) */
};

/* A descriptor in a context. The memory is its owner's; with several run threads it stays until they have returned. */
struct cpb_socket {
    cpb_reactor *reactor;
    int fd; /* -1: closed */
    cpb_op *reader, *writer;
    uint32_t ready;          /* readiness that nobody has waited for: edge-triggered back ends */
    cpb_socket *armed_next;  /* poll's list of sockets with an operation that waits */
    cpb_socket **armed_link; /* NULL: not in it */
    uint32_t in_flight;      /* operations that io_uring holds */
};

typedef struct cpb_timer {
    cpb_op op; /* first: completes with result 0, or -ECANCELED */
    cpb_reactor *reactor;
    uint64_t deadline_ns; /* of cpb_clock_ns */
    size_t place;         /* in the heap, from 1; 0: not there */
} cpb_timer;

/* NULL, or a static sentence why this back end cannot run here (probed once). */
const char *cpb_reactor_unavailable(cpb_reactor_kind kind);

/* Creates a context that `run_threads` threads will run. CPB_OK, CPB_E_NO_MEMORY, or CPB_E_SYSTEM with errno set. A
 * lockless context takes one run thread. */
int cpb_reactor_create(cpb_reactor **out, cpb_reactor_kind kind, bool lockless, unsigned run_threads);

/* Nothing may be outstanding but what the loop has queued. Accepts NULL. */
void cpb_reactor_destroy(cpb_reactor *reactor);

/* Runs until nothing is outstanding or it is stopped. CPB_OK, or CPB_E_SYSTEM when the kernel refuses to poll. */
int cpb_reactor_run(cpb_reactor *reactor);

/* Runs what is ready without waiting: one poll and one pass. Answers how many operations it completed. */
size_t cpb_reactor_poll(cpb_reactor *reactor);

/* Keeps run threads running though nothing is outstanding, until the release. */
void cpb_reactor_hold(cpb_reactor *reactor);
void cpb_reactor_release(cpb_reactor *reactor);

/* Makes all run threads return; what is queued stays queued. From inside the loop, or from any thread when locked. */
void cpb_reactor_stop(cpb_reactor *reactor);
/* After a stop, before the next run. */
void cpb_reactor_restart(cpb_reactor *reactor);

/* Queues `op` (its `complete` is set) to be completed by the loop. */
void cpb_reactor_post(cpb_reactor *reactor, cpb_op *op);

/* SOCK_NONBLOCK for back ends that try first, 0 for io_uring, which waits for blocking descriptors itself. */
int cpb_reactor_socket_flags(const cpb_reactor *reactor);

/* Takes a descriptor that was made with these flags into the context. CPB_OK or CPB_E_SYSTEM with errno set; the
 * descriptor stays the caller's on failure. */
int cpb_socket_open(cpb_socket *socket, cpb_reactor *reactor, int fd);

/* Closes it; operations that wait complete with -ECANCELED. */
void cpb_socket_close(cpb_socket *socket);

/* Starts a read, write, accept or connect. True: it has completed inline and `complete` will not be called. */
bool cpb_op_start(cpb_op *op);

/* Arms a timer to complete at `deadline_ns`; false when there is no memory for it. */
bool cpb_timer_start(cpb_timer *timer, cpb_reactor *reactor, uint64_t deadline_ns);
/* Completes it with -ECANCELED through the loop; nothing when it is not armed. */
void cpb_timer_cancel(cpb_timer *timer);

/* Sets up `op` for cpb_op_start. */
static inline void
cpb_op_prepare(cpb_op *op, cpb_op_kind kind, cpb_socket *socket, void *data, size_t size, bool exact)
{
    op->kind = (uint8_t)kind;
    op->socket = socket;
    op->data = data;
    op->size = size;
    op->done = 0;
    op->exact = exact;
    op->finished = false;
}

#endif
