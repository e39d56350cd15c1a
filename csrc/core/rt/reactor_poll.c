/* poll: the set is made anew for each call, from the sockets that have an operation waiting. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "rt/reactor_parts.h"

typedef struct poll_backend {
    cpb_socket *armed;
    size_t count; /* sockets in that list */
    struct pollfd *set;
    cpb_socket **sockets; /* of the set, from 1: the first is the wake-up descriptor */
    size_t capacity;
} poll_backend;

static int
init(cpb_reactor *reactor)
{
    reactor->backend = calloc(1, sizeof(poll_backend));
    return reactor->backend != NULL ? CPB_OK : CPB_E_NO_MEMORY;
}

static void
fini(cpb_reactor *reactor)
{
    poll_backend *self = reactor->backend;
    free(self->set);
    free(self->sockets);
    free(self);
}

static int
attach(cpb_reactor *reactor, cpb_socket *socket)
{
    (void)reactor;
    (void)socket;
    return CPB_OK;
}

static void
unlink_armed(poll_backend *self, cpb_socket *socket)
{
    *socket->armed_link = socket->armed_next;
    if (socket->armed_next != NULL)
        socket->armed_next->armed_link = socket->armed_link;
    socket->armed_link = NULL;
    self->count--;
}

static void
detach(cpb_reactor *reactor, cpb_socket *socket)
{
    if (socket->armed_link != NULL)
        unlink_armed(reactor->backend, socket);
}

static void
submit(cpb_reactor *reactor, cpb_op *op)
{
    poll_backend *self = reactor->backend;
    cpb_socket *socket = op->socket;
    if (socket->armed_link == NULL) {
        socket->armed_next = self->armed;
        socket->armed_link = &self->armed;
        if (self->armed != NULL)
            self->armed->armed_link = &socket->armed_next;
        self->armed = socket;
        self->count++;
    }
    /* A wait that is under way does not know of it. */
    if (reactor->blocked)
        cpb_reactor_interrupt(reactor);
}

/* The size of the set, or -1. */
static int
make_set(cpb_reactor *reactor, poll_backend *self)
{
    size_t wanted = self->count + 1;
    if (wanted > self->capacity) {
        struct pollfd *set = realloc(self->set, 2 * wanted * sizeof *set);
        if (set != NULL)
            self->set = set;
        cpb_socket **sockets = realloc(self->sockets, 2 * wanted * sizeof(cpb_socket *));
        if (sockets != NULL)
            self->sockets = sockets;
        if (set == NULL || sockets == NULL) {
            errno = ENOMEM;
            return -1;
        }
        self->capacity = 2 * wanted;
    }
    self->set[0] = (struct pollfd){.fd = reactor->wake_fd, .events = POLLIN};
    size_t i = 1;
    for (cpb_socket *socket = self->armed; socket != NULL; socket = socket->armed_next, i++) {
        short events = 0;
        if (socket->reader != NULL)
            events |= POLLIN;
        if (socket->writer != NULL)
            events |= POLLOUT;
        self->set[i] = (struct pollfd){.fd = socket->fd, .events = events};
        self->sockets[i] = socket;
    }
    return (int)i;
}

static void
take(poll_backend *self, size_t i, cpb_op_list *ready)
{
    cpb_socket *socket = self->sockets[i];
    uint32_t bits = 0;
    if (socket->armed_link == NULL || socket->fd != self->set[i].fd)
        return; /* closed meanwhile */
    short events = self->set[i].revents;
    if (events & (POLLIN | POLLHUP | POLLERR | POLLNVAL))
        bits |= CPB_READY_IN;
    if (events & (POLLOUT | POLLHUP | POLLERR | POLLNVAL))
        bits |= CPB_READY_OUT;
    cpb_reactor_take_ready(socket, bits, ready);
    socket->ready = 0; /* level-triggered: who waits next is told again */
    if (socket->reader == NULL && socket->writer == NULL)
        unlink_armed(self, socket);
}

static int
poll_events(cpb_reactor *reactor, int64_t timeout_ns, cpb_op_list *ready)
{
    poll_backend *self = reactor->backend;
    cpb_reactor_lock(reactor);
    int size = make_set(reactor, self);
    cpb_reactor_unlock(reactor);
    if (size < 1)
        return CPB_E_SYSTEM;
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    CPB_COUNT(CPB_SYSCALLS);
    CPB_COUNT(CPB_POLLS);
    int count = ppoll(self->set, (nfds_t)size, timeout_ns == CPB_WAIT_FOREVER ? NULL : &timeout, NULL);
    if (count <= 0)
        return count == 0 || errno == EINTR ? CPB_OK : CPB_E_SYSTEM;
    cpb_reactor_lock(reactor);
    if (self->set[0].revents != 0)
        cpb_reactor_drain_wake(reactor);
    for (int i = 1; i < size; i++) {
        if (self->set[i].revents != 0)
            take(self, (size_t)i, ready);
    }
    cpb_reactor_unlock(reactor);
    return CPB_OK;
}

const cpb_reactor_table cpb_reactor_poll_table = {init, fini, attach, detach, true, submit, poll_events};
