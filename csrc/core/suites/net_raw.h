/* net_raw.h: the loops of the raw contenders: a case's system calls with no runtime around them, the floor of what a
 * runtime can reach. Templates: each case inlines its own step into them, so that a loop is what one would write by
 * hand.
 *
 * The regulation is every contender's: an actor makes at most 1 + CPB_INLINE_BUDGET calls in a row, then the others
 * have their turn and the kernel is polled once. */
#ifndef CPB_SUITES_NET_RAW_H
#define CPB_SUITES_NET_RAW_H

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "rt/uring.h"
#include "suites/net_suite.h"

#define NET_TEMPLATE static inline __attribute__((always_inline))

/* An actor's present step; embedded first in the actor. */
typedef struct net_raw {
    int fd;
    bool sends, waits, ended;
    void *data;
    size_t size;
} net_raw;

/* What a case says after its actor's step moved `moved` bytes (0 or less: an end of file or an error): false when the
 * actor has ended; else the next step is in the actor's net_raw. */
typedef bool (*net_raw_moved)(void *actor, int64_t moved);

NET_TEMPLATE net_raw *
net_raw_at(void *actors, size_t stride, unsigned index)
{
    return (net_raw *)(void *)((char *)actors + index * stride);
}

NET_TEMPLATE int64_t
net_raw_call(const net_raw *step)
{
    CPB_COUNT(CPB_SYSCALLS);
    if (step->sends) {
        CPB_COUNT(CPB_WRITES);
        return send(step->fd, step->data, step->size, MSG_NOSIGNAL);
    }
    CPB_COUNT(CPB_READS);
    return recv(step->fd, step->data, step->size, 0);
}

/* Runs until *running is 0, which `moved` counts down. An event of `epoll` names the first of `per_event` actors that
 * look again. CPB_OK or CPB_E_SYSTEM with errno set. */
NET_TEMPLATE int
net_raw_epoll(int epoll, void *actors, size_t stride, unsigned count, unsigned per_event, const unsigned *running,
              net_raw_moved moved)
{
    struct epoll_event events[64];
    while (*running > 0) {
        for (unsigned i = 0; i < count; i++) {
            net_raw *step = net_raw_at(actors, stride, i);
            bool more = !step->waits && !step->ended;
            for (unsigned calls = 0; more && calls < 1 + CPB_INLINE_BUDGET; calls++) {
                int64_t bytes = net_raw_call(step);
                if (bytes < 0 && errno == EAGAIN) {
                    step->waits = true;
                    more = false;
                } else if (!moved(step, bytes)) {
                    step->ended = true;
                    more = false;
                }
            }
        }
        if (*running == 0)
            break;
        /* Looked at afterwards: one actor's step may set another one going. */
        bool ready = false;
        for (unsigned i = 0; i < count && !ready; i++) {
            const net_raw *step = net_raw_at(actors, stride, i);
            ready = !step->waits && !step->ended;
        }
        CPB_COUNT(CPB_SYSCALLS);
        CPB_COUNT(CPB_POLLS);
        int got = epoll_wait(epoll, events, 64, ready ? 0 : -1);
        if (got < 0 && errno != EINTR)
            return CPB_E_SYSTEM;
        for (int i = 0; i < got; i++) {
            for (unsigned j = 0; j < per_event; j++)
                net_raw_at(actors, stride, events[i].data.u32 + j)->waits = false;
        }
    }
    return CPB_OK;
}

static inline bool
net_raw_submit(cpb_uring *ring, net_raw *step)
{
    struct io_uring_sqe *entry = cpb_uring_entry(ring);
    if (entry == NULL)
        return false;
    if (step->sends)
        CPB_COUNT(CPB_WRITES);
    else
        CPB_COUNT(CPB_READS);
    entry->opcode = step->sends ? IORING_OP_SEND : IORING_OP_RECV;
    entry->fd = step->fd;
    entry->addr = (uint64_t)(uintptr_t)step->data;
    entry->len = (uint32_t)step->size;
    entry->msg_flags = step->sends ? MSG_NOSIGNAL : 0;
    entry->user_data = (uint64_t)(uintptr_t)step;
    step->waits = true; /* it is in the kernel, also from one run to the next */
    return true;
}

/* The same on a ring: in each pass, actors that neither wait nor have ended are submitted together. */
NET_TEMPLATE int
net_raw_uring(cpb_uring *ring, void *actors, size_t stride, unsigned count, const unsigned *running,
              net_raw_moved moved)
{
    while (*running > 0) {
        for (unsigned i = 0; i < count; i++) {
            net_raw *step = net_raw_at(actors, stride, i);
            if (!step->waits && !step->ended && !net_raw_submit(ring, step))
                return CPB_E_SYSTEM;
        }
        int result = cpb_uring_enter(ring, ring->unsubmitted, 1, -1);
        if (result < 0 && result != -EINTR) {
            errno = -result;
            return CPB_E_SYSTEM;
        }
        ring->unsubmitted -= result > 0 ? (unsigned)result : 0;
        for (struct io_uring_cqe *done; (done = cpb_uring_peek(ring)) != NULL; cpb_uring_seen(ring)) {
            net_raw *step = (net_raw *)(uintptr_t)done->user_data; /* NOLINT: as it was given to the kernel */
            step->waits = false;
            step->ended = !moved(step, done->res);
        }
    }
    return CPB_OK;
}

/* The kernel's side of a raw contender. */
typedef struct net_raw_kernel {
    int epoll; /* -1: none */
    cpb_uring ring;
    bool has_ring;
} net_raw_kernel;

/* CPB_OK, or the run has its reason. */
int net_raw_open(net_base *base, net_raw_kernel *kernel);
void net_raw_close(net_raw_kernel *kernel);
/* Registers a descriptor whose events wake the actors from `first` on; nothing on a ring. */
int net_raw_watch(net_base *base, net_raw_kernel *kernel, int fd, unsigned first);

#endif
