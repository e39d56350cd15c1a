#include "rt/reactor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "rt/reactor_parts.h"

static const cpb_reactor_table *const tables[] = {&cpb_reactor_epoll, &cpb_reactor_poll_table, &cpb_reactor_uring};

const char *
cpb_reactor_unavailable(cpb_reactor_kind kind)
{
    return kind == CPB_REACTOR_URING ? cpb_uring_unavailable() : NULL;
}

/* Work that has begun and not completed: plain in a lockless context. */
static inline void
outstanding_add(cpb_reactor *reactor, int64_t change)
{
    if (reactor->lockless)
        cpb_atomic_store_relaxed(&reactor->outstanding, cpb_atomic_load_relaxed(&reactor->outstanding) + change);
    else
        (void)cpb_atomic_add_acq_rel(&reactor->outstanding, change);
}

static inline bool
nothing_outstanding(cpb_reactor *reactor)
{
    return cpb_atomic_load_acquire(&reactor->outstanding) == 0;
}

void
cpb_reactor_interrupt(cpb_reactor *reactor)
{
    uint64_t one = 1;
    CPB_COUNT(CPB_SYSCALLS);
    if (write(reactor->wake_fd, &one, sizeof one) < 0) {
        /* The counter is full: the wait ends all the same. */
    }
}

void
cpb_reactor_drain_wake(cpb_reactor *reactor)
{
    uint64_t value;
    CPB_COUNT(CPB_SYSCALLS);
    if (read(reactor->wake_fd, &value, sizeof value) < 0) {
        /* Another thread was quicker. */
    }
}

/* With the lock: queues, and sees to it that somebody looks. */
static void
queue(cpb_reactor *reactor, cpb_op *op)
{
    cpb_op_list_append(&reactor->ready, op);
    if (reactor->sleeping > 0)
        pthread_cond_signal(&reactor->wake);
    else if (CPB_UNLIKELY(reactor->blocked))
        cpb_reactor_interrupt(reactor);
}

void
cpb_reactor_post(cpb_reactor *reactor, cpb_op *op)
{
    CPB_COUNT(CPB_POSTS);
    op->kind = CPB_OP_POSTED;
    op->finished = true;
    op->result = 0;
    outstanding_add(reactor, 1);
    cpb_reactor_lock(reactor);
    queue(reactor, op);
    cpb_reactor_unlock(reactor);
}

/* One system call of an operation, or several of an exact one. False: it would block. */
static bool
attempt(cpb_op *op)
{
    int fd = op->socket->fd;
    for (;;) {
        int64_t moved;
        CPB_COUNT(CPB_SYSCALLS);
        switch (op->kind) {
        case CPB_OP_READ:
            CPB_COUNT(CPB_READS);
            moved = recv(fd, (char *)op->data + op->done, op->size - op->done, 0);
            break;
        case CPB_OP_WRITE:
            CPB_COUNT(CPB_WRITES);
            moved = send(fd, (const char *)op->data + op->done, op->size - op->done, MSG_NOSIGNAL);
            break;
        case CPB_OP_ACCEPT:
            moved = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
            break;
        default:
            moved = connect(fd, op->data, (socklen_t)op->size);
            if (moved < 0 && (errno == EISCONN))
                moved = 0; /* the second look at a connect that was in progress */
            break;
        }
        if (CPB_UNLIKELY(moved < 0)) {
            if (errno == EINTR)
                continue;
            if (errno == EAGAIN || errno == EINPROGRESS || errno == EALREADY)
                return false;
            op->result = op->socket->fd < 0 ? -ECANCELED : -errno;
            return true;
        }
        if (op->kind != CPB_OP_READ && op->kind != CPB_OP_WRITE) {
            op->result = moved;
            return true;
        }
        op->done += (size_t)moved;
        op->result = (int64_t)op->done;
        if (!op->exact || op->done == op->size || moved == 0)
            return true;
    }
}

static bool
is_reader(const cpb_op *op)
{
    return op->kind == CPB_OP_READ || op->kind == CPB_OP_ACCEPT;
}

/* Leaves an operation that would block with its socket. False: readiness came meanwhile, so it is to be tried again. */
static bool
arm(cpb_reactor *reactor, cpb_op *op)
{
    cpb_socket *socket = op->socket;
    bool armed = true;
    cpb_reactor_lock(reactor);
    uint32_t bit = is_reader(op) ? CPB_READY_IN : CPB_READY_OUT;
    if (CPB_UNLIKELY(socket->fd < 0)) {
        op->result = -ECANCELED;
        op->finished = true;
        queue(reactor, op);
    } else if (socket->ready & bit) {
        socket->ready &= ~bit;
        armed = false;
    } else {
        *(is_reader(op) ? &socket->reader : &socket->writer) = op;
        if (reactor->table->submit != NULL)
            reactor->table->submit(reactor, op);
    }
    cpb_reactor_unlock(reactor);
    return armed;
}

static bool
start_submitted(cpb_reactor *reactor, cpb_op *op)
{
    outstanding_add(reactor, 1);
    cpb_reactor_lock(reactor);
    reactor->table->submit(reactor, op);
    cpb_reactor_unlock(reactor);
    return false;
}

bool
cpb_op_start(cpb_op *op)
{
    cpb_reactor *reactor = op->socket->reactor;
    if (!reactor->table->readiness)
        return start_submitted(reactor, op);
    do {
        if (CPB_LIKELY(attempt(op))) {
            if (CPB_LIKELY(op->actor->budget > 0)) {
                op->actor->budget--;
                return true;
            }
            op->finished = true;
            outstanding_add(reactor, 1);
            cpb_reactor_lock(reactor);
            queue(reactor, op);
            cpb_reactor_unlock(reactor);
            return false;
        }
        /* Counted before it is armed: another run thread may complete it at once. */
        outstanding_add(reactor, 1);
        if (CPB_LIKELY(arm(reactor, op)))
            return false;
        outstanding_add(reactor, -1);
    } while (true);
}

void
cpb_reactor_take_ready(cpb_socket *socket, uint32_t bits, cpb_op_list *ready)
{
    if (bits & CPB_READY_IN) {
        if (socket->reader != NULL) {
            cpb_op_list_append(ready, socket->reader);
            socket->reader = NULL;
            bits &= ~CPB_READY_IN;
        }
    }
    if (bits & CPB_READY_OUT) {
        if (socket->writer != NULL) {
            cpb_op_list_append(ready, socket->writer);
            socket->writer = NULL;
            bits &= ~CPB_READY_OUT;
        }
    }
    socket->ready |= bits;
}

/* Timers: a binary heap by deadline, from 1. */

static void
place(cpb_reactor *reactor, size_t at, cpb_timer *timer)
{
    reactor->heap[at] = timer;
    timer->place = at;
}

static void
sift_up(cpb_reactor *reactor, size_t at, cpb_timer *timer)
{
    while (at > 1 && reactor->heap[at / 2]->deadline_ns > timer->deadline_ns) {
        place(reactor, at, reactor->heap[at / 2]);
        at /= 2;
    }
    place(reactor, at, timer);
}

static void
sift_down(cpb_reactor *reactor, size_t at, cpb_timer *timer)
{
    for (size_t child; (child = 2 * at) <= reactor->timers; at = child) {
        if (child < reactor->timers && reactor->heap[child + 1]->deadline_ns < reactor->heap[child]->deadline_ns)
            child++;
        if (reactor->heap[child]->deadline_ns >= timer->deadline_ns)
            break;
        place(reactor, at, reactor->heap[child]);
    }
    place(reactor, at, timer);
}

static void
heap_remove(cpb_reactor *reactor, cpb_timer *timer)
{
    size_t at = timer->place;
    cpb_timer *last = reactor->heap[reactor->timers--];
    timer->place = 0;
    if (last == timer)
        return;
    if (at > 1 && reactor->heap[at / 2]->deadline_ns > last->deadline_ns)
        sift_up(reactor, at, last);
    else
        sift_down(reactor, at, last);
}

bool
cpb_timer_start(cpb_timer *timer, cpb_reactor *reactor, uint64_t deadline_ns)
{
    bool stored = true;
    timer->reactor = reactor;
    timer->deadline_ns = deadline_ns;
    timer->op.kind = CPB_OP_POSTED;
    timer->op.finished = true;
    timer->op.result = 0;
    outstanding_add(reactor, 1);
    cpb_reactor_lock(reactor);
    if (CPB_UNLIKELY(reactor->timers + 1 >= reactor->heap_size)) {
        size_t size = reactor->heap_size == 0 ? 16 : 2 * reactor->heap_size;
        cpb_timer **heap = realloc(reactor->heap, size * sizeof *heap);
        stored = heap != NULL;
        if (stored) {
            reactor->heap = heap;
            reactor->heap_size = size;
        }
    }
    if (CPB_LIKELY(stored)) {
        sift_up(reactor, ++reactor->timers, timer);
        /* A wait that is under way may be too long now. */
        if (timer->place == 1 && CPB_UNLIKELY(reactor->blocked))
            cpb_reactor_interrupt(reactor);
    }
    cpb_reactor_unlock(reactor);
    if (CPB_UNLIKELY(!stored))
        outstanding_add(reactor, -1);
    return stored;
}

void
cpb_timer_cancel(cpb_timer *timer)
{
    if (timer->reactor == NULL)
        return;
    cpb_reactor *reactor = timer->reactor;
    cpb_reactor_lock(reactor);
    if (timer->place != 0) {
        heap_remove(reactor, timer);
        timer->op.result = -ECANCELED;
        queue(reactor, &timer->op);
    }
    cpb_reactor_unlock(reactor);
}

/* With the lock: expired timers become ready. */
static void
expire(cpb_reactor *reactor, cpb_op_list *ready)
{
    if (CPB_LIKELY(reactor->timers == 0))
        return;
    uint64_t now = cpb_clock_ns();
    while (reactor->timers > 0 && reactor->heap[1]->deadline_ns <= now) {
        cpb_timer *timer = reactor->heap[1];
        heap_remove(reactor, timer);
        cpb_op_list_append(ready, &timer->op);
    }
}

/* With the lock: how long a poll may wait. */
static int64_t
patience(const cpb_reactor *reactor)
{
    if (reactor->timers == 0)
        return CPB_WAIT_FOREVER;
    uint64_t now = cpb_clock_ns(), deadline = reactor->heap[1]->deadline_ns;
    return deadline > now ? (int64_t)(deadline - now) : 0;
}

/* The loop */

/* Completes one operation, or tries it again and leaves it with its socket. True when it completed. */
static bool
run_op(cpb_reactor *reactor, cpb_op *op)
{
    while (!op->finished && !attempt(op)) {
        if (arm(reactor, op))
            return false;
    }
    if (op->actor != NULL)
        op->actor->budget = CPB_INLINE_BUDGET;
    op->finished = true;
    CPB_INDIRECT(op->complete)(op);
    /* After it: what it starts is counted before this one goes, so that no other run thread sees the work ended. */
    outstanding_add(reactor, -1);
    return true;
}

static void
join(cpb_op_list *into, cpb_op_list *from)
{
    if (from->head == NULL)
        return;
    if (into->tail != NULL)
        into->tail->next = from->head;
    else
        into->head = from->head;
    into->tail = from->tail;
    from->head = from->tail = NULL;
}

/* One pass of a context's only run thread: takes what is ready, polls once, waiting only when there is nothing, and
 * runs both. What is queued meanwhile belongs to the next pass. */
static int
pass(cpb_reactor *reactor, bool wait, size_t *completed)
{
    cpb_op_list batch = {NULL, NULL}, polled = {NULL, NULL};
    cpb_reactor_lock(reactor);
    join(&batch, &reactor->ready);
    int64_t timeout = batch.head != NULL || !wait ? 0 : patience(reactor);
    reactor->blocked = timeout != 0;
    cpb_reactor_unlock(reactor);
    int status = reactor->table->poll(reactor, timeout, &polled);
    cpb_reactor_lock(reactor);
    reactor->blocked = false;
    expire(reactor, &polled);
    if (CPB_UNLIKELY(reactor->stopped)) {
        join(&batch, &polled);
        join(&batch, &reactor->ready);
        reactor->ready = batch;
        batch.head = NULL;
    }
    cpb_reactor_unlock(reactor);
    join(&batch, &polled);
    for (cpb_op *op = batch.head, *next; op != NULL; op = next) {
        next = op->next;
        *completed += run_op(reactor, op);
        if (CPB_UNLIKELY(reactor->stopped) && next != NULL) {
            cpb_reactor_lock(reactor);
            cpb_op_list rest = {next, batch.tail};
            join(&rest, &reactor->ready);
            reactor->ready = rest;
            cpb_reactor_unlock(reactor);
            break;
        }
    }
    return status;
}

static bool
is_stopped(cpb_reactor *reactor)
{
    cpb_reactor_lock(reactor);
    bool stopped = reactor->stopped;
    cpb_reactor_unlock(reactor);
    return stopped;
}

static int
run_alone(cpb_reactor *reactor)
{
    size_t completed = 0;
    int status = CPB_OK;
    while (status == CPB_OK && !nothing_outstanding(reactor) && !is_stopped(reactor))
        status = pass(reactor, true, &completed);
    return status;
}

/* One of several run threads. With the lock: takes one operation at a time; whoever takes the marker polls for all. */
static int
run_shared(cpb_reactor *reactor)
{
    int status = CPB_OK;
    cpb_reactor_lock(reactor);
    while (status == CPB_OK && !reactor->stopped && !nothing_outstanding(reactor)) {
        cpb_op *op = reactor->ready.head;
        if (op == NULL) {
            reactor->sleeping++;
            pthread_cond_wait(&reactor->wake, &reactor->mutex);
            reactor->sleeping--;
            continue;
        }
        reactor->ready.head = op->next;
        if (reactor->ready.head == NULL)
            reactor->ready.tail = NULL;
        if (op == &reactor->poll_marker) {
            cpb_op_list polled = {NULL, NULL};
            int64_t timeout = reactor->ready.head != NULL ? 0 : patience(reactor);
            if (timeout == 0 && reactor->sleeping > 0 && reactor->ready.head != NULL)
                pthread_cond_signal(&reactor->wake);
            reactor->blocked = timeout != 0;
            cpb_reactor_unlock(reactor);
            status = reactor->table->poll(reactor, timeout, &polled);
            cpb_reactor_lock(reactor);
            reactor->blocked = false;
            expire(reactor, &polled);
            join(&reactor->ready, &polled);
            cpb_op_list_append(&reactor->ready, &reactor->poll_marker);
            continue;
        }
        if (reactor->ready.head != NULL && reactor->sleeping > 0)
            pthread_cond_signal(&reactor->wake);
        cpb_reactor_unlock(reactor);
        run_op(reactor, op);
        cpb_reactor_lock(reactor);
    }
    /* The others: those that sleep, and one that waits in the back end. */
    pthread_cond_broadcast(&reactor->wake);
    if (reactor->blocked)
        cpb_reactor_interrupt(reactor);
    cpb_reactor_unlock(reactor);
    return status;
}

int
cpb_reactor_run(cpb_reactor *reactor)
{
    return reactor->run_threads == 1 ? run_alone(reactor) : run_shared(reactor);
}

size_t
cpb_reactor_poll(cpb_reactor *reactor)
{
    size_t completed = 0;
    if (reactor->run_threads == 1) {
        (void)pass(reactor, false, &completed);
        return completed;
    }
    cpb_reactor_lock(reactor);
    cpb_op *op;
    while (!reactor->stopped && (op = reactor->ready.head) != NULL) {
        reactor->ready.head = op->next;
        if (reactor->ready.head == NULL)
            reactor->ready.tail = NULL;
        bool end = op == &reactor->poll_marker;
        cpb_op_list polled = {NULL, NULL};
        cpb_reactor_unlock(reactor);
        if (end)
            (void)reactor->table->poll(reactor, 0, &polled);
        else
            completed += run_op(reactor, op);
        cpb_reactor_lock(reactor);
        if (end) {
            expire(reactor, &polled);
            join(&reactor->ready, &polled);
            cpb_op_list_append(&reactor->ready, &reactor->poll_marker);
            if (reactor->ready.head == &reactor->poll_marker)
                break;
        }
    }
    cpb_reactor_unlock(reactor);
    return completed;
}

void
cpb_reactor_hold(cpb_reactor *reactor)
{
    outstanding_add(reactor, 1);
}

/* The last work: those that sleep or wait in the back end look again. */
void
cpb_reactor_release(cpb_reactor *reactor)
{
    cpb_reactor_lock(reactor);
    outstanding_add(reactor, -1);
    if (nothing_outstanding(reactor)) {
        pthread_cond_broadcast(&reactor->wake);
        if (reactor->blocked)
            cpb_reactor_interrupt(reactor);
    }
    cpb_reactor_unlock(reactor);
}

void
cpb_reactor_stop(cpb_reactor *reactor)
{
    cpb_reactor_lock(reactor);
    reactor->stopped = true;
    pthread_cond_broadcast(&reactor->wake);
    if (reactor->blocked)
        cpb_reactor_interrupt(reactor);
    cpb_reactor_unlock(reactor);
}

void
cpb_reactor_restart(cpb_reactor *reactor)
{
    cpb_reactor_lock(reactor);
    reactor->stopped = false;
    cpb_reactor_unlock(reactor);
}

int
cpb_reactor_create(cpb_reactor **out, cpb_reactor_kind kind, bool lockless, unsigned run_threads)
{
    cpb_reactor *self = calloc(1, sizeof *self);
    if (self == NULL)
        return CPB_E_NO_MEMORY;
    self->table = tables[kind];
    self->lockless = lockless;
    self->run_threads = run_threads;
    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->wake_fd < 0) {
        free(self);
        return CPB_E_SYSTEM;
    }
    int status = self->table->init(self);
    if (status != CPB_OK) {
        int error = errno;
        close(self->wake_fd);
        free(self);
        errno = error;
        return status;
    }
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->wake, NULL);
    if (run_threads > 1)
        cpb_op_list_append(&self->ready, &self->poll_marker);
    *out = self;
    return CPB_OK;
}

void
cpb_reactor_destroy(cpb_reactor *reactor)
{
    if (reactor == NULL)
        return;
    reactor->table->fini(reactor);
    close(reactor->wake_fd);
    pthread_cond_destroy(&reactor->wake);
    pthread_mutex_destroy(&reactor->mutex);
    free(reactor->heap);
    free(reactor);
}

int
cpb_reactor_socket_flags(const cpb_reactor *reactor)
{
    return reactor->table->readiness ? SOCK_NONBLOCK : 0;
}

int
cpb_socket_open(cpb_socket *socket, cpb_reactor *reactor, int fd)
{
    memset(socket, 0, sizeof *socket);
    socket->reactor = reactor;
    socket->fd = fd;
    int status = reactor->table->attach(reactor, socket);
    if (status != CPB_OK)
        socket->fd = -1;
    return status;
}

void
cpb_socket_close(cpb_socket *socket)
{
    cpb_reactor *reactor = socket->reactor;
    if (reactor == NULL || socket->fd < 0)
        return;
    cpb_reactor_lock(reactor);
    int fd = socket->fd;
    socket->fd = -1;
    for (int side = 0; side < 2; side++) {
        cpb_op **waiting = side == 0 ? &socket->reader : &socket->writer;
        if (*waiting != NULL) {
            (*waiting)->result = -ECANCELED;
            (*waiting)->finished = true;
            queue(reactor, *waiting);
            *waiting = NULL;
        }
    }
    socket->fd = fd;
    reactor->table->detach(reactor, socket);
    socket->fd = -1;
    cpb_reactor_unlock(reactor);
    CPB_COUNT(CPB_SYSCALLS);
    close(fd);
}
