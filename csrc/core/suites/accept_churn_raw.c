/* Accept churn without a runtime. On loopback the handshake is over when connect returns "in progress": the accept
 * finds the connection, and one look at the socket confirms the connect. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "suites/accept_churn.h"

static bool
wait_for(int fd, short events)
{
    struct pollfd set = {.fd = fd, .events = events};
    CPB_COUNT(CPB_SYSCALLS);
    CPB_COUNT(CPB_POLLS);
    return poll(&set, 1, -1) == 1;
}

static int
connect_to(int fd, const struct sockaddr_in *address)
{
    CPB_COUNT(CPB_SYSCALLS);
    return connect(fd, (const struct sockaddr *)address, sizeof *address);
}

/* True when the connect that was in progress has succeeded. */
static bool
connected(int fd, const struct sockaddr_in *address)
{
    while (connect_to(fd, address) != 0) {
        if (errno == EISCONN)
            return true;
        if (errno != EALREADY || !wait_for(fd, POLLOUT))
            return false;
    }
    return true;
}

static int
accept_one(int listener)
{
    for (;;) {
        CPB_COUNT(CPB_SYSCALLS);
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 || errno != EAGAIN || !wait_for(listener, POLLIN))
            return fd;
    }
}

static bool
carry_byte(churn_loop *self, int client, int server)
{
    self->sent++;
    CPB_COUNT(CPB_SYSCALLS);
    CPB_COUNT(CPB_WRITES);
    if (send(client, &self->sent, 1, MSG_NOSIGNAL) != 1)
        return false;
    for (;;) {
        CPB_COUNT(CPB_SYSCALLS);
        CPB_COUNT(CPB_READS);
        ssize_t moved = recv(server, &self->received, 1, 0);
        if (moved == 1)
            return self->received == self->sent;
        if (moved == 0 || errno != EAGAIN || !wait_for(server, POLLIN))
            return false;
    }
}

static void
close_fd(int fd)
{
    if (fd < 0)
        return;
    CPB_COUNT(CPB_SYSCALLS);
    close(fd);
}

/* One op; clients and servers have room for it. */
static bool
cycle(churn_loop *self, int *clients, int *servers, unsigned count)
{
    bool good = true;
    for (unsigned i = 0; i < count; i++)
        clients[i] = servers[i] = -1;
    for (unsigned i = 0; good && i < count; i++) {
        clients[i] = churn_client(self->state);
        good = clients[i] >= 0 && (connect_to(clients[i], &self->address) == 0 || errno == EINPROGRESS);
    }
    for (unsigned i = 0; good && i < count; i++)
        good = (servers[i] = accept_one(self->listener_fd)) >= 0;
    for (unsigned i = 0; good && i < count; i++)
        good = connected(clients[i], &self->address);
    if (good && self->state->burst == 0)
        good = carry_byte(self, clients[0], servers[0]);
    for (unsigned i = 0; i < count; i++)
        close_fd(clients[i]);
    for (unsigned i = 0; i < count; i++)
        close_fd(servers[i]);
    return good;
}

/* Loops take turns, an op each. */
int
churn_perform_raw(churn_state *state)
{
    unsigned count = state->burst > 0 ? state->burst : 1;
    int *fds = malloc(2 * count * sizeof *fds);
    if (fds == NULL)
        return CPB_E_NO_MEMORY;
    for (unsigned i = 0; churn_claim(state); i = (i + 1) % state->loop_count) {
        churn_loop *loop = &state->loops[i];
        if (!cycle(loop, fds, fds + count, count)) {
            state->failed++;
            break;
        }
        loop->cycles++;
        state->done++;
    }
    free(fds);
    return CPB_OK;
}
