/* Ping-pong without any runtime: the same system calls, hand-written. The floor of what a runtime can reach.
 *
 * The regulation is that of every contender: an actor makes at most 17 steps (one that woke it and 16 more), then the
 * others have their turn and the kernel is polled once. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/compiler.h"
#include "rt/uring.h"
#include "suites/socket_latency.h"

enum { SEND_OUT, RECEIVE_OUT, SEND_BACK, RECEIVE_BACK, STEPS };

/* Socket and buffer of a step. */
static int
descriptor(const latency_actor *self)
{
    return self->step == SEND_OUT || self->step == RECEIVE_BACK ? self->pair.client : self->pair.server;
}

static unsigned char *
buffer(const latency_actor *self)
{
    return self->step == SEND_OUT ? self->out : self->step == RECEIVE_BACK ? self->back : self->in;
}

static bool
sends(const latency_actor *self)
{
    return self->step == SEND_OUT || self->step == SEND_BACK;
}

/* After a step moved its bytes: on to the next, whose op may have to be claimed. False: the actor has ended. */
static bool
advance(latency_actor *self)
{
    self->op.done = 0;
    if (self->step == RECEIVE_BACK)
        latency_record(self);
    self->step = (self->step + 1) % STEPS;
    return self->step != SEND_OUT || latency_claim(self);
}

typedef struct raw_epoll {
    int fd;
} raw_epoll;

int
latency_prepare_epoll(latency_state *state)
{
    raw_epoll *self = malloc(sizeof *self);
    if (self == NULL)
        return CPB_E_NO_MEMORY;
    self->fd = epoll_create1(EPOLL_CLOEXEC);
    int status = self->fd >= 0 ? CPB_OK : CPB_E_SYSTEM;
    for (unsigned i = 0; status == CPB_OK && i < state->pairs; i++) {
        latency_actor *actor = &state->actors[i];
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = actor};
        if (epoll_ctl(self->fd, EPOLL_CTL_ADD, actor->pair.client, &event) != 0 ||
            epoll_ctl(self->fd, EPOLL_CTL_ADD, actor->pair.server, &event) != 0)
            status = CPB_E_SYSTEM;
    }
    state->raw = self;
    return status;
}

void
latency_finish_epoll(latency_state *state)
{
    raw_epoll *self = state->raw;
    if (self != NULL && self->fd >= 0)
        close(self->fd);
    free(self);
}

typedef enum outcome { MORE, WAITS, ENDED } outcome;

/* One system call of an actor. */
static outcome
one_step(latency_actor *self)
{
    latency_state *state = self->state;
    size_t left = state->message - self->op.done;
    ssize_t moved;
    CPB_COUNT(CPB_SYSCALLS);
    if (sends(self)) {
        CPB_COUNT(CPB_WRITES);
        moved = send(descriptor(self), buffer(self) + self->op.done, left, MSG_NOSIGNAL);
    } else {
        CPB_COUNT(CPB_READS);
        moved = recv(descriptor(self), buffer(self) + self->op.done, left, 0);
    }
    if (CPB_UNLIKELY(moved <= 0)) {
        if (moved < 0 && errno == EAGAIN)
            return WAITS;
        state->failed++;
        return ENDED;
    }
    self->op.done += (size_t)moved;
    return self->op.done < state->message || advance(self) ? MORE : ENDED;
}

int
latency_perform_epoll(latency_state *state)
{
    const raw_epoll *self = state->raw;
    struct epoll_event events[64];
    unsigned running = 0;
    for (unsigned i = 0; i < state->pairs; i++) {
        latency_actor *actor = &state->actors[i];
        actor->step = SEND_OUT;
        actor->op.done = 0;
        actor->waits = false;
        actor->ended = !latency_claim(actor);
        running += !actor->ended;
    }
    while (running > 0) {
        unsigned ready = 0;
        for (unsigned i = 0; i < state->pairs; i++) {
            latency_actor *actor = &state->actors[i];
            if (actor->waits || actor->ended)
                continue;
            outcome last = MORE;
            for (unsigned steps = 0; last == MORE && steps < 1 + CPB_INLINE_BUDGET; steps++)
                last = one_step(actor);
            actor->waits = last == WAITS;
            actor->ended = last == ENDED;
            running -= last == ENDED;
            ready += last == MORE;
        }
        if (running == 0)
            break;
        CPB_COUNT(CPB_SYSCALLS);
        CPB_COUNT(CPB_POLLS);
        int count = epoll_wait(self->fd, events, 64, ready > 0 ? 0 : -1);
        if (count < 0 && errno != EINTR)
            return CPB_E_SYSTEM;
        for (int i = 0; i < count; i++)
            ((latency_actor *)events[i].data.ptr)->waits = false;
    }
    return CPB_OK;
}

int
latency_prepare_uring(latency_state *state)
{
    cpb_uring *ring = malloc(sizeof *ring);
    if (ring == NULL)
        return CPB_E_NO_MEMORY;
    int status = cpb_uring_init(ring, 64, true, true);
    if (status != CPB_OK) {
        free(ring);
        return status;
    }
    state->raw = ring;
    return CPB_OK;
}

void
latency_finish_uring(latency_state *state)
{
    cpb_uring *ring = state->raw;
    if (ring == NULL)
        return;
    cpb_uring_fini(ring);
    free(ring);
}

static void
submit_step(cpb_uring *ring, latency_actor *self)
{
    struct io_uring_sqe *entry = cpb_uring_entry(ring);
    if (entry == NULL) {
        self->state->failed++;
        return;
    }
    if (sends(self))
        CPB_COUNT(CPB_WRITES);
    else
        CPB_COUNT(CPB_READS);
    entry->opcode = sends(self) ? IORING_OP_SEND : IORING_OP_RECV;
    entry->fd = descriptor(self);
    entry->addr = (uint64_t)(uintptr_t)(buffer(self) + self->op.done);
    entry->len = (uint32_t)(self->state->message - self->op.done);
    entry->msg_flags = sends(self) ? MSG_NOSIGNAL | MSG_WAITALL : MSG_WAITALL;
    entry->user_data = (uint64_t)(uintptr_t)self;
}

int
latency_perform_uring(latency_state *state)
{
    cpb_uring *ring = state->raw;
    unsigned running = 0;
    for (unsigned i = 0; i < state->pairs; i++) {
        latency_actor *actor = &state->actors[i];
        actor->step = SEND_OUT;
        actor->op.done = 0;
        if (latency_claim(actor)) {
            submit_step(ring, actor);
            running++;
        }
    }
    while (running > 0 && state->failed == 0) {
        int result = cpb_uring_enter(ring, ring->unsubmitted, 1, -1);
        if (result < 0 && result != -EINTR)
            return CPB_E_SYSTEM;
        ring->unsubmitted -= result > 0 ? (unsigned)result : 0;
        for (struct io_uring_cqe *done; (done = cpb_uring_peek(ring)) != NULL; cpb_uring_seen(ring)) {
            latency_actor *actor = (latency_actor *)(uintptr_t)done->user_data; /* NOLINT: as it was given */
            if (CPB_UNLIKELY(done->res <= 0)) {
                state->failed++;
                return CPB_OK;
            }
            actor->op.done += (size_t)done->res;
            if (CPB_UNLIKELY(actor->op.done < state->message) || advance(actor))
                submit_step(ring, actor);
            else
                running--;
        }
    }
    return CPB_OK;
}
