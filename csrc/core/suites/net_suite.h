/* net_suite.h: what the network suites share: contenders, contexts with their run threads, connected pairs, counts. */
#ifndef CPB_SUITES_NET_SUITE_H
#define CPB_SUITES_NET_SUITE_H

#include <stdatomic.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/histogram.h"
#include "base/thread.h"
#include "rt/net.h"
#include "rt/reactor.h"
#include "rt/task.h"
#include "suites/suite.h"

typedef enum net_style { NET_CALLBACK, NET_TASK, NET_RAW } net_style;

typedef struct net_contender {
    const char *name;
    net_style style;
    cpb_reactor_kind reactor;
} net_contender;

/* By the cell's name; every cell's contender is one of these. */
const net_contender *net_contender_of(const cpb_case *cell);

/* For the `unavailable` of cells on io_uring. */
const char *net_unavailable_uring(void);

typedef struct net_pair {
    cpb_pair fds;
    cpb_socket client, server; /* unused in raw contenders */
} net_pair;

typedef struct net_runners net_runners;

typedef struct net_base net_base;
struct net_base {
    cpb_run *run;
    const net_contender *contender;
    cpb_reactor *reactor; /* NULL in raw contenders */
    bool lockless;
    unsigned threads; /* that run the context, the calling one included */
    net_pair *pairs;
    unsigned pair_count, opened;
    cpb_env env;
    cpb_stop_token stop;
    _Atomic(int) status; /* what went wrong in an actor: no memory */
    cpb_parked_thread parked;
    bool is_parked;
    void (*theirs)(net_base *);  /* net_run_with's */
    struct net_runners *runners; /* NULL with one thread */
};

/* Makes the context, parks a thread (cells are CPB_THREADED: without a thread glibc's locks are not real), opens the
 * pairs. On failure the run has its reason and everything is given back. */
int net_open(net_base *base, cpb_run *run, bool lockless, unsigned threads, unsigned pairs, bool local);

/* Closes pairs and context; first runs the loop until what waits on the sockets has ended with -ECANCELED. */
void net_close(net_base *base);

/* Runs the context on all its threads until nothing is outstanding or it is stopped from within. CPB_OK, or the first
 * error of the loop or of an actor; the run has the reason. */
int net_run(net_base *base);

/* The same with work before a thread runs the context: `mine` on the calling thread, `theirs` on each of the others
 * (NULL: none). Until the calling thread's work is done the context does not run out. */
int net_run_with(net_base *base, void (*mine)(net_base *), void (*theirs)(net_base *));

/* Non-blocking or not, as the contender's back end wants new descriptors. */
int net_socket_flags(const net_base *base);

/* The last figure of a case's name: "concurrent/16" -> 16; `otherwise` where it has none. */
unsigned net_argument(const cpb_case *cell, unsigned otherwise);
/* Whether the case's name begins with `prefix`. */
bool net_is(const cpb_case *cell, const char *prefix);
bool net_is_lockless(const cpb_case *cell);

/* A frame for an actor of style task, with the environment of the run: NULL (and the base's status set) without memory.
 */
cpb_task *net_task(net_base *base, size_t size, cpb_frame *(*resume)(cpb_frame *), void (*destroy)(cpb_frame *));

/* Descriptors. X(contender, summary, unavailable) for the contenders of a case. */
#define NET_RUNTIMES(X)                                                                                                \
    X("callback-epoll", "callbacks on epoll", NULL)                                                                    \
    X("task-epoll", "coroutines on epoll", NULL)                                                                       \
    X("callback-uring", "callbacks on io_uring", net_unavailable_uring)                                                \
    X("task-uring", "coroutines on io_uring", net_unavailable_uring)                                                   \
    X("callback-poll", "callbacks on poll", NULL)

#define NET_BASELINES "asio-callback callback-epoll"

#endif
