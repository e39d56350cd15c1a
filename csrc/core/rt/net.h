/* net.h: loopback sockets as the network suites want them (network specification 1.3, 1.4): pairs and listeners, their
 * options set, read back and noted. Only 127.0.0.1, ports chosen by the kernel. All of it is outside the timed region.
 */
#ifndef CPB_RT_NET_H
#define CPB_RT_NET_H

#include <netinet/in.h>
#include <stdbool.h>

#include "capybench.h"

#define CPB_BACKLOG 128

typedef struct cpb_pair {
    int client, server; /* -1: closed */
} cpb_pair;

/* A connected pair, without inheritance by children. `local`: a socketpair of the UNIX domain without any option;
 * else TCP with TCP_NODELAY and a linger of 0 s. `type_flags` is 0 or SOCK_NONBLOCK. Fails the run with a sentence that
 * names what was refused, the descriptor limit above all. */
int cpb_pair_open(cpb_run *run, cpb_pair *pair, bool local, int type_flags);
void cpb_pair_close(cpb_pair *pair);

/* A listener on 127.0.0.1 with SO_REUSEADDR; with `small`, also the options of accept_churn, which what it accepts
 * inherits: buffers of 1024 bytes and a linger of 0 s. Stores its address. */
int cpb_listener_open(cpb_run *run, int *fd, struct sockaddr_in *address, bool small, int type_flags);

/* The options of accept_churn on a socket of either end. 0 or -1 with errno set. */
int cpb_socket_make_small(int fd);

/* Notes the effective buffers, options and congestion control of a socket. */
void cpb_socket_note(cpb_run *run, int fd);

/* Fails the run when `descriptors` more than are open now would go beyond the limit; names both. */
int cpb_need_descriptors(cpb_run *run, unsigned descriptors);

#endif
