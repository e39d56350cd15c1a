#include "suites/net_raw.h"

#include <string.h>
#include <unistd.h>

int
net_raw_open(net_base *base, net_raw_kernel *kernel)
{
    cpb_run *run = base->run;
    kernel->epoll = -1;
    if (base->contender->reactor == CPB_REACTOR_EPOLL) {
        kernel->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (kernel->epoll < 0)
            return run->host->fail(run, CPB_E_SYSTEM, "epoll was refused: %s", strerror(errno));
        return CPB_OK;
    }
    if (cpb_uring_init(&kernel->ring, 256, true, true) != CPB_OK)
        return run->host->fail(run, CPB_E_SYSTEM, "io_uring was refused: %s", strerror(errno));
    kernel->has_ring = true;
    return CPB_OK;
}

void
net_raw_close(net_raw_kernel *kernel)
{
    if (kernel->has_ring)
        cpb_uring_fini(&kernel->ring);
    else if (kernel->epoll > 0)
        close(kernel->epoll);
    kernel->has_ring = false;
    kernel->epoll = -1;
}

int
net_raw_watch(net_base *base, net_raw_kernel *kernel, int fd, unsigned first)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.u32 = first};
    if (kernel->has_ring || epoll_ctl(kernel->epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return CPB_OK;
    return base->run->host->fail(base->run, CPB_E_SYSTEM, "epoll did not take a socket: %s", strerror(errno));
}
