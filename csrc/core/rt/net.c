#include "rt/net.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static int
refused(cpb_run *run, const char *what)
{
    int error = errno;
    if (error == EMFILE) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        return run->host->fail(run, CPB_E_SYSTEM,
                               "%s: the limit of %llu open files is reached; raise it with ulimit -n", what,
                               (unsigned long long)limit.rlim_cur);
    }
    return run->host->fail(run, CPB_E_SYSTEM, "%s: %s", what, strerror(error));
}

static int
set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value);
}

static int
linger_zero(int fd)
{
    struct linger off = {.l_onoff = 1, .l_linger = 0};
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof off);
}

int
cpb_socket_make_small(int fd)
{
    if (set_int(fd, SOL_SOCKET, SO_SNDBUF, 1024) != 0 || set_int(fd, SOL_SOCKET, SO_RCVBUF, 1024) != 0)
        return -1;
    return linger_zero(fd);
}

int
cpb_listener_open(cpb_run *run, int *fd, struct sockaddr_in *address, bool small, int type_flags)
{
    socklen_t size = sizeof *address;
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | type_flags, 0);
    if (listener < 0)
        return refused(run, "no listening socket");
    if (set_int(listener, SOL_SOCKET, SO_REUSEADDR, 1) == 0 && (!small || cpb_socket_make_small(listener) == 0) &&
        bind(listener, (struct sockaddr *)address, sizeof *address) == 0 && listen(listener, CPB_BACKLOG) == 0 &&
        getsockname(listener, (struct sockaddr *)address, &size) == 0) {
        *fd = listener;
        return CPB_OK;
    }
    int status = refused(run, "a listener on 127.0.0.1 was refused");
    close(listener);
    return status;
}

static int
open_tcp(cpb_run *run, cpb_pair *pair)
{
    int listener;
    struct sockaddr_in address;
    int status = cpb_listener_open(run, &listener, &address, false, 0);
    if (status != CPB_OK)
        return status;
    pair->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pair->client < 0 || connect(pair->client, (struct sockaddr *)&address, sizeof address) != 0 ||
        (pair->server = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0)
        status = refused(run, "a connection over 127.0.0.1 was refused");
    close(listener);
    const int ends[2] = {pair->client, pair->server};
    for (int i = 0; status == CPB_OK && i < 2; i++) {
        if (set_int(ends[i], IPPROTO_TCP, TCP_NODELAY, 1) != 0 || linger_zero(ends[i]) != 0)
            status = refused(run, "TCP_NODELAY and SO_LINGER could not be set");
    }
    return status;
}

int
cpb_pair_open(cpb_run *run, cpb_pair *pair, bool local, int type_flags)
{
    int fds[2] = {-1, -1};
    int status = CPB_OK;
    pair->client = pair->server = -1;
    if (local) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | type_flags, 0, fds) != 0)
            status = refused(run, "no socket pair");
        pair->client = fds[0];
        pair->server = fds[1];
    } else {
        status = open_tcp(run, pair);
        /* Blocking until here: connect and accept happen outside the context that is measured. */
        if (status == CPB_OK && type_flags != 0) {
            if (fcntl(pair->client, F_SETFL, O_NONBLOCK) != 0 || fcntl(pair->server, F_SETFL, O_NONBLOCK) != 0)
                status = refused(run, "O_NONBLOCK could not be set");
        }
    }
    if (status != CPB_OK)
        cpb_pair_close(pair);
    return status;
}

void
cpb_pair_close(cpb_pair *pair)
{
    if (pair->client >= 0)
        close(pair->client);
    if (pair->server >= 0)
        close(pair->server);
    pair->client = pair->server = -1;
}

static void
note_int(cpb_run *run, const char *key, int fd, int level, int option)
{
    int value = 0;
    socklen_t size = sizeof value;
    char text[16];
    if (getsockopt(fd, level, option, &value, &size) != 0)
        return;
    snprintf(text, sizeof text, "%d", value);
    run->host->note(run, key, text);
}

void
cpb_socket_note(cpb_run *run, int fd)
{
    note_int(run, "SO_SNDBUF", fd, SOL_SOCKET, SO_SNDBUF);
    note_int(run, "SO_RCVBUF", fd, SOL_SOCKET, SO_RCVBUF);
    int domain = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain == AF_UNIX)
        return;
    struct linger linger = {0};
    size = sizeof linger;
    if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &size) == 0)
        run->host->note(run, "SO_LINGER", linger.l_onoff ? (linger.l_linger == 0 ? "0 s" : "on") : "off");
    note_int(run, "TCP_NODELAY", fd, IPPROTO_TCP, TCP_NODELAY);
    char algorithm[32] = "";
    size = sizeof algorithm - 1;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, &size) == 0)
        run->host->note(run, "TCP_CONGESTION", algorithm);
}

int
cpb_need_descriptors(cpb_run *run, unsigned descriptors)
{
    struct rlimit limit;
    unsigned open_now = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL || getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        if (folder != NULL)
            closedir(folder);
        return CPB_OK; /* what is refused later says why */
    }
    while (readdir(folder) != NULL)
        open_now++;
    closedir(folder);
    open_now -= open_now > 3 ? 3 : 0; /* ".", ".." and the folder itself */
    if (limit.rlim_cur == RLIM_INFINITY || open_now + descriptors <= limit.rlim_cur)
        return CPB_OK;
    return run->host->fail(
        run, CPB_E_SYSTEM,
        "this case needs %u open files beside the %u there are, and the limit is %llu; raise it with "
        "ulimit -n",
        descriptors, open_now, (unsigned long long)limit.rlim_cur);
}
