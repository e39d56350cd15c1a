/* epoll, edge-triggered: a descriptor is registered once for both directions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "rt/reactor_parts.h"

#define EVENTS 128

typedef struct epoll_backend {
    int fd;
} epoll_backend;

static int
init(cpb_reactor *reactor)
{
    epoll_backend *self = malloc(sizeof *self);
    if (self == NULL)
        return CPB_E_NO_MEMORY;
    self->fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event wake = {.events = EPOLLIN, .data.ptr = NULL};
    if (self->fd < 0 || epoll_ctl(self->fd, EPOLL_CTL_ADD, reactor->wake_fd, &wake) != 0) {
        int error = errno;
        if (self->fd >= 0)
            close(self->fd);
        free(self);
        errno = error;
        return CPB_E_SYSTEM;
    }
    reactor->backend = self;
    return CPB_OK;
}

static void
fini(cpb_reactor *reactor)
{
    epoll_backend *self = reactor->backend;
    close(self->fd);
    free(self);
}

static int
attach(cpb_reactor *reactor, cpb_socket *socket)
{
    const epoll_backend *self = reactor->backend;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = socket};
    CPB_COUNT(CPB_SYSCALLS);
    return epoll_ctl(self->fd, EPOLL_CTL_ADD, socket->fd, &event) == 0 ? CPB_OK : CPB_E_SYSTEM;
}

/* Explicitly, and before the close: a child between fork and exec still holds the descriptor. */
static void
detach(cpb_reactor *reactor, cpb_socket *socket)
{
    const epoll_backend *self = reactor->backend;
    CPB_COUNT(CPB_SYSCALLS);
    epoll_ctl(self->fd, EPOLL_CTL_DEL, socket->fd, NULL);
}

static int
wait_for(const epoll_backend *self, struct epoll_event *events, int64_t timeout_ns)
{
    CPB_COUNT(CPB_SYSCALLS);
    CPB_COUNT(CPB_POLLS);
    if (timeout_ns == 0 || timeout_ns == CPB_WAIT_FOREVER)
        return epoll_wait(self->fd, events, EVENTS, timeout_ns == 0 ? 0 : -1);
    struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
#if __GLIBC_PREREQ(2, 35)
    int count = epoll_pwait2(self->fd, events, EVENTS, &timeout, NULL);
    if (count >= 0 || errno != ENOSYS)
        return count;
#endif
    /* Whole milliseconds, rounded up: early is wrong, late is not. */
    int64_t ms = timeout.tv_sec * 1000 + (timeout.tv_nsec + 999999) / 1000000;
    return epoll_wait(self->fd, events, EVENTS, ms < 60000 ? (int)ms : 60000);
}

static int
poll_events(cpb_reactor *reactor, int64_t timeout_ns, cpb_op_list *ready)
{
    struct epoll_event events[EVENTS];
    int count = wait_for(reactor->backend, events, timeout_ns);
    if (count < 0)
        return errno == EINTR ? CPB_OK : CPB_E_SYSTEM;
    if (count == 0)
        return CPB_OK;
    cpb_reactor_lock(reactor);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL) {
            cpb_reactor_drain_wake(reactor);
            continue;
        }
        uint32_t bits = 0;
        if (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            bits |= CPB_READY_IN;
        if (events[i].events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
            bits |= CPB_READY_OUT;
        cpb_reactor_take_ready(events[i].data.ptr, bits, ready);
    }
    cpb_reactor_unlock(reactor);
    return CPB_OK;
}

const cpb_reactor_table cpb_reactor_epoll = {init, fini, attach, detach, true, NULL, poll_events};
