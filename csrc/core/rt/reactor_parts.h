/* reactor_parts.h: what the run loop and its back ends share. Not for anybody else. */
#ifndef CPB_RT_REACTOR_PARTS_H
#define CPB_RT_REACTOR_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "rt/reactor.h"

#define CPB_READY_IN 1u
#define CPB_READY_OUT 2u
#define CPB_WAIT_FOREVER INT64_MAX

typedef struct cpb_op_list {
    cpb_op *head, *tail;
} cpb_op_list;

typedef struct cpb_reactor_table {
    /* CPB_OK or CPB_E_SYSTEM with errno set. */
    int (*init)(cpb_reactor *reactor);
    void (*fini)(cpb_reactor *reactor);
    int (*attach)(cpb_reactor *reactor, cpb_socket *socket);
    void (*detach)(cpb_reactor *reactor, cpb_socket *socket);
    /* True: tries the system call first and waits for readiness. False: submits the operation. */
    bool readiness;
    /* Submits (io_uring), or lets a poller know that a socket has a new waiter (poll). Called with the lock. */
    void (*submit)(cpb_reactor *reactor, cpb_op *op);
    /* Waits up to `timeout_ns` (0: not at all) and appends what may go on to `ready`. Called by one thread at a time,
     * without the lock. CPB_OK or CPB_E_SYSTEM with errno set. */
    int (*poll)(cpb_reactor *reactor, int64_t timeout_ns, cpb_op_list *ready);
} cpb_reactor_table;

struct cpb_reactor {
    const cpb_reactor_table *table;
    void *backend;
    bool lockless;
    unsigned run_threads;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    cpb_op_list ready;
    cpb_op poll_marker; /* in `ready` of a context with several run threads: whoever takes it polls */
    unsigned sleeping;
    bool blocked; /* somebody waits in the back end's poll */
    bool stopped;
    int wake_fd; /* an eventfd that ends such a wait */
    _Atomic(int64_t) outstanding;
    cpb_timer **heap; /* from 1 */
    size_t timers, heap_size;
};

static inline void
cpb_op_list_append(cpb_op_list *list, cpb_op *op)
{
    op->next = NULL;
    if (list->tail != NULL)
        list->tail->next = op;
    else
        list->head = op;
    list->tail = op;
}

static inline void
cpb_reactor_lock(cpb_reactor *reactor)
{
    if (!reactor->lockless) {
        CPB_COUNT(CPB_MUTEX_PAIRS);
        pthread_mutex_lock(&reactor->mutex);
    }
}

static inline void
cpb_reactor_unlock(cpb_reactor *reactor)
{
    if (!reactor->lockless)
        pthread_mutex_unlock(&reactor->mutex);
}

/* Takes the waiting operations that readiness `bits` lets go on; remembers the rest. Called with the lock. */
void cpb_reactor_take_ready(cpb_socket *socket, uint32_t bits, cpb_op_list *ready);

/* Ends a wait in the back end. */
void cpb_reactor_interrupt(cpb_reactor *reactor);
/* Empties the wake-up descriptor after such a wait. */
void cpb_reactor_drain_wake(cpb_reactor *reactor);

extern const cpb_reactor_table cpb_reactor_epoll, cpb_reactor_poll_table, cpb_reactor_uring;
const char *cpb_uring_unavailable(void);

#endif
