/* io_uring: operations are submitted, and the loop enters the kernel once a pass for submission and completions. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "rt/reactor_parts.h"
#include "rt/uring.h"

#define ENTRIES 256u
#define WAKE_DATA UINT64_C(1)   /* the poll of the wake-up descriptor */
#define CANCEL_DATA UINT64_C(2) /* a cancellation's own completion */

#ifndef IORING_ASYNC_CANCEL_FD
#    define IORING_ASYNC_CANCEL_FD (1U << 1)
#endif
#ifndef IORING_ASYNC_CANCEL_ALL
#    define IORING_ASYNC_CANCEL_ALL (1U << 0)
#endif

static void
submit_filled(cpb_uring *ring)
{
    int submitted = cpb_uring_enter(ring, ring->unsubmitted, 0, 0);
    ring->unsubmitted -= submitted > 0 ? (unsigned)submitted : 0;
}

static bool
watch_wake(cpb_reactor *reactor, cpb_uring *ring)
{
    struct io_uring_sqe *entry = cpb_uring_entry(ring);
    if (entry == NULL)
        return false;
    entry->opcode = IORING_OP_POLL_ADD;
    entry->fd = reactor->wake_fd;
    entry->poll32_events = POLLIN;
    entry->user_data = WAKE_DATA;
    return true;
}

static int
init(cpb_reactor *reactor)
{
    cpb_uring *ring = malloc(sizeof *ring);
    if (ring == NULL)
        return CPB_E_NO_MEMORY;
    int status = cpb_uring_init(ring, ENTRIES, reactor->lockless, reactor->run_threads == 1);
    if (status != CPB_OK) {
        int error = errno;
        free(ring);
        errno = error;
        return status;
    }
    reactor->backend = ring;
    /* A lockless context is stopped from within only, so nobody would use it. */
    if (!reactor->lockless)
        watch_wake(reactor, ring);
    return CPB_OK;
}

static void
fini(cpb_reactor *reactor)
{
    cpb_uring_fini(reactor->backend);
    free(reactor->backend);
}

static int
attach(cpb_reactor *reactor, cpb_socket *socket)
{
    (void)reactor;
    (void)socket;
    return CPB_OK;
}

static void
detach(cpb_reactor *reactor, cpb_socket *socket)
{
    if (socket->in_flight == 0)
        return;
    cpb_uring *ring = reactor->backend;
    struct io_uring_sqe *entry = cpb_uring_entry(ring);
    if (entry == NULL)
        return;
    entry->opcode = IORING_OP_ASYNC_CANCEL;
    entry->fd = socket->fd;
    entry->cancel_flags = IORING_ASYNC_CANCEL_FD | IORING_ASYNC_CANCEL_ALL;
    entry->user_data = CANCEL_DATA;
    submit_filled(ring); /* while the descriptor still names the socket */
}

static void
fill(struct io_uring_sqe *entry, cpb_op *op)
{
    int whole = op->exact ? MSG_WAITALL : 0;
    entry->fd = op->socket->fd;
    entry->user_data = (uint64_t)(uintptr_t)op;
    switch (op->kind) {
    case CPB_OP_READ:
        CPB_COUNT(CPB_READS);
        entry->opcode = IORING_OP_RECV;
        entry->msg_flags = (uint32_t)whole;
        break;
    case CPB_OP_WRITE:
        CPB_COUNT(CPB_WRITES);
        entry->opcode = IORING_OP_SEND;
        entry->msg_flags = (uint32_t)(whole | MSG_NOSIGNAL);
        break;
    case CPB_OP_ACCEPT:
        entry->opcode = IORING_OP_ACCEPT;
        entry->accept_flags = SOCK_CLOEXEC;
        return;
    default:
        entry->opcode = IORING_OP_CONNECT;
        entry->addr = (uint64_t)(uintptr_t)op->data;
        entry->off = op->size;
        return;
    }
    entry->addr = (uint64_t)(uintptr_t)((char *)op->data + op->done);
    entry->len = (uint32_t)(op->size - op->done);
}

static void
submit(cpb_reactor *reactor, cpb_op *op)
{
    cpb_uring *ring = reactor->backend;
    struct io_uring_sqe *entry = cpb_uring_entry(ring);
    if (entry == NULL) {
        op->result = -EBUSY;
        op->finished = true;
        cpb_op_list_append(&reactor->ready, op);
        return;
    }
    fill(entry, op);
    op->socket->in_flight++;
    /* Whoever waits in the kernel submitted before this was filled. */
    if (reactor->blocked)
        submit_filled(ring);
}

/* True when the operation goes on: a short count of an exact one, or one to be tried again. */
static bool
again(cpb_op *op, int32_t result)
{
    op->result = result;
    if (result == -EINTR || result == -EAGAIN)
        return true;
    if (result < 0 || (op->kind != CPB_OP_READ && op->kind != CPB_OP_WRITE))
        return false;
    op->done += (size_t)result;
    op->result = (int64_t)op->done;
    return op->exact && result > 0 && op->done < op->size;
}

static void
reap(cpb_reactor *reactor, cpb_uring *ring, cpb_op_list *ready)
{
    for (struct io_uring_cqe *completion; (completion = cpb_uring_peek(ring)) != NULL; cpb_uring_seen(ring)) {
        if (completion->user_data == CANCEL_DATA)
            continue;
        if (completion->user_data == WAKE_DATA) {
            cpb_reactor_drain_wake(reactor);
            watch_wake(reactor, ring);
            continue;
        }
        cpb_op *op = (cpb_op *)(uintptr_t)completion->user_data; /* NOLINT: as it was given to the kernel */
        op->socket->in_flight--;
        if (again(op, completion->res)) {
            submit(reactor, op);
            continue;
        }
        op->finished = true;
        cpb_op_list_append(ready, op);
    }
}

static int
poll_completions(cpb_reactor *reactor, int64_t timeout_ns, cpb_op_list *ready)
{
    cpb_uring *ring = reactor->backend;
    cpb_reactor_lock(reactor);
    unsigned count = ring->unsubmitted;
    ring->unsubmitted = 0;
    cpb_reactor_unlock(reactor);
    bool there = cpb_uring_peek(ring) != NULL;
    if (count > 0 || !there) {
        int64_t patience = timeout_ns == CPB_WAIT_FOREVER ? -1 : timeout_ns;
        int result = cpb_uring_enter(ring, count, there || timeout_ns == 0 ? 0 : 1, patience);
        unsigned submitted = result > 0 ? (unsigned)result : 0;
        if (CPB_UNLIKELY(submitted < count)) {
            cpb_reactor_lock(reactor);
            ring->unsubmitted += count - submitted;
            cpb_reactor_unlock(reactor);
        }
        if (result < 0 && result != -EINTR && result != -ETIME && result != -EAGAIN && result != -EBUSY) {
            errno = -result;
            return CPB_E_SYSTEM;
        }
    }
    cpb_reactor_lock(reactor);
    reap(reactor, ring, ready);
    cpb_reactor_unlock(reactor);
    return CPB_OK;
}

const cpb_reactor_table cpb_reactor_uring = {init, fini, attach, detach, false, submit, poll_completions};
