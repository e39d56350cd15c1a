/* The three back ends, locked and lockless: inline completion and its budget, would-block and wake-up, exact transfers,
 * end of file, cancellation by close, timers in order, stop and restart, posts from other threads, several run threads;
 * and the histogram. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "check.h"
#include "rt/reactor.h"

typedef struct fixture {
    cpb_reactor *reactor;
    cpb_socket left, right;
    cpb_actor actor;
} fixture;

static void
open_fixture(fixture *self, cpb_reactor_kind kind, bool lockless, unsigned threads)
{
    int fds[2];
    CHECK_EQ(cpb_reactor_create(&self->reactor, kind, lockless, threads), CPB_OK);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | cpb_reactor_socket_flags(self->reactor), 0, fds), 0);
    CHECK_EQ(cpb_socket_open(&self->left, self->reactor, fds[0]), CPB_OK);
    CHECK_EQ(cpb_socket_open(&self->right, self->reactor, fds[1]), CPB_OK);
}

static void
close_fixture(fixture *self)
{
    cpb_socket_close(&self->left);
    cpb_socket_close(&self->right);
    CHECK_EQ(cpb_reactor_run(self->reactor), CPB_OK);
    cpb_reactor_destroy(self->reactor);
}

typedef struct counted {
    cpb_op op; /* first */
    int calls;
    int order;
} counted;

static _Atomic(int) completions;

static void
on_complete(cpb_op *op)
{
    counted *self = (counted *)(void *)op;
    self->calls++;
    self->order = ++completions;
}

static void
begin(counted *self, fixture *on, cpb_socket *socket, cpb_op_kind kind, void *data, size_t size, bool exact)
{
    self->op.complete = on_complete;
    self->op.actor = &on->actor;
    self->calls = 0;
    cpb_op_prepare(&self->op, kind, socket, data, size, exact);
}

/* A read that waits, then a write that wakes it. */
static void
test_wait(cpb_reactor_kind kind, bool lockless)
{
    fixture on = {0};
    open_fixture(&on, kind, lockless, 1);
    counted reader = {0}, writer = {0};
    char got[8] = "", sent[] = "message";
    begin(&reader, &on, &on.right, CPB_OP_READ, got, sizeof got, true);
    CHECK(!cpb_op_start(&reader.op));
    CHECK_EQ(cpb_reactor_poll(on.reactor), 0);
    begin(&writer, &on, &on.left, CPB_OP_WRITE, sent, 3, true);
    bool done = cpb_op_start(&writer.op);
    while (!done && writer.calls == 0)
        cpb_reactor_poll(on.reactor);
    CHECK_EQ(writer.op.result, 3);
    cpb_reactor_poll(on.reactor);
    CHECK_EQ(reader.calls, 0); /* an exact read goes on waiting */
    begin(&writer, &on, &on.left, CPB_OP_WRITE, sent + 3, 5, true);
    done = cpb_op_start(&writer.op);
    CHECK_EQ(cpb_reactor_run(on.reactor), CPB_OK);
    CHECK(done || writer.calls == 1);
    CHECK_EQ(reader.calls, 1);
    CHECK_EQ(reader.op.result, 8);
    CHECK_STR(got, "message");
    /* End of file, then reading on. */
    shutdown(on.left.fd, SHUT_WR);
    begin(&reader, &on, &on.right, CPB_OP_READ, got, sizeof got, false);
    if (!cpb_op_start(&reader.op))
        CHECK_EQ(cpb_reactor_run(on.reactor), CPB_OK);
    CHECK_EQ(reader.op.result, 0);
    close_fixture(&on);
}

/* A close completes what waits with -ECANCELED, through the loop. */
static void
test_cancel(cpb_reactor_kind kind, bool lockless)
{
    fixture on = {0};
    open_fixture(&on, kind, lockless, 1);
    counted reader = {0};
    char got[8];
    begin(&reader, &on, &on.right, CPB_OP_READ, got, sizeof got, false);
    CHECK(!cpb_op_start(&reader.op));
    CHECK_EQ(cpb_reactor_poll(on.reactor), 0);
    cpb_socket_close(&on.right);
    CHECK_EQ(reader.calls, 0);
    CHECK_EQ(cpb_reactor_run(on.reactor), CPB_OK);
    CHECK_EQ(reader.calls, 1);
    CHECK_EQ(reader.op.result, -ECANCELED);
    close_fixture(&on);
}

/* 16 completions inline per wake-up, the next one through the loop. */
static void
test_budget(cpb_reactor_kind kind)
{
    fixture on = {0};
    open_fixture(&on, kind, false, 1);
    counted first = {0}, op = {0};
    char byte = 'x';
    first.op.complete = on_complete;
    first.op.actor = &on.actor;
    cpb_reactor_post(on.reactor, &first.op);
    CHECK_EQ(cpb_reactor_poll(on.reactor), 1); /* a wake-up */
    unsigned inline_count = 0;
    for (;;) {
        begin(&op, &on, &on.left, CPB_OP_WRITE, &byte, 1, true);
        if (!cpb_op_start(&op.op))
            break;
        inline_count++;
    }
    CHECK_EQ(inline_count, kind == CPB_REACTOR_URING ? 0 : CPB_INLINE_BUDGET);
    CHECK_EQ(op.calls, 0);
    CHECK_EQ(cpb_reactor_run(on.reactor), CPB_OK);
    CHECK_EQ(op.calls, 1);
    CHECK_EQ(op.op.result, 1);
    CHECK_EQ(on.actor.budget, CPB_INLINE_BUDGET);
    close_fixture(&on);
}

typedef struct timed {
    cpb_timer timer; /* first */
    int calls, order;
} timed;

static void
on_timed(cpb_op *op)
{
    timed *self = (timed *)(void *)op;
    self->calls++;
    self->order = ++completions;
}

static void
test_timers(cpb_reactor_kind kind, bool lockless)
{
    cpb_reactor *reactor;
    enum { COUNT = 40 };
    static timed timers[COUNT];
    CHECK_EQ(cpb_reactor_create(&reactor, kind, lockless, 1), CPB_OK);
    memset(timers, 0, sizeof timers);
    completions = 0;
    uint64_t now = cpb_clock_ns();
    for (unsigned i = 0; i < COUNT; i++) {
        timers[i].timer.op.complete = on_timed;
        CHECK(cpb_timer_start(&timers[i].timer, reactor, now + (i * 7 % COUNT) * 20000));
    }
    cpb_timer_cancel(&timers[5].timer);
    cpb_timer_cancel(&timers[5].timer); /* a second time is nothing */
    CHECK_EQ(cpb_reactor_run(reactor), CPB_OK);
    CHECK(cpb_clock_ns() >= now + (COUNT - 1) * 20000); /* never early */
    CHECK_EQ(completions, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_EQ(timers[i].calls, 1);
        CHECK_EQ(timers[i].timer.op.result, i == 5 ? -ECANCELED : 0);
        for (unsigned j = 0; i != 5 && j < COUNT; j++) {
            if (j != 5 && timers[j].timer.deadline_ns < timers[i].timer.deadline_ns)
                CHECK(timers[j].order < timers[i].order);
        }
    }
    cpb_reactor_destroy(reactor);
}

typedef struct stopper {
    cpb_op op; /* first */
    cpb_reactor *reactor;
} stopper;

static void
on_stop(cpb_op *op)
{
    cpb_reactor_stop(((stopper *)(void *)op)->reactor);
}

static void
test_stop(cpb_reactor_kind kind, bool lockless)
{
    cpb_reactor *reactor;
    CHECK_EQ(cpb_reactor_create(&reactor, kind, lockless, 1), CPB_OK);
    stopper stop = {.op.complete = on_stop, .reactor = reactor};
    counted after = {.op.complete = on_complete};
    cpb_reactor_post(reactor, &stop.op);
    cpb_reactor_post(reactor, &after.op);
    CHECK_EQ(cpb_reactor_run(reactor), CPB_OK);
    CHECK_EQ(after.calls, 0);
    CHECK_EQ(cpb_reactor_run(reactor), CPB_OK); /* still stopped */
    CHECK_EQ(after.calls, 0);
    cpb_reactor_restart(reactor);
    CHECK_EQ(cpb_reactor_run(reactor), CPB_OK);
    CHECK_EQ(after.calls, 1);
    cpb_reactor_destroy(reactor);
}

enum { POSTS = 4000, RUNNERS = 3 };

static _Atomic(long) handled;

static void
on_shared(cpb_op *op)
{
    free(op);
    atomic_fetch_add(&handled, 1);
}

static void *
run_context(void *reactor)
{
    CHECK_EQ(cpb_reactor_run(reactor), CPB_OK);
    return NULL;
}

static void *
post_many(void *reactor)
{
    for (int i = 0; i < POSTS; i++) {
        cpb_op *op = calloc(1, sizeof *op);
        CHECK(op != NULL);
        op->complete = on_shared;
        cpb_reactor_post(reactor, op);
    }
    return NULL;
}

/* Posts from two threads to a context that others run, which sleep in between. */
static void
test_threads(cpb_reactor_kind kind, unsigned runners)
{
    cpb_reactor *reactor;
    pthread_t run[RUNNERS], post[2];
    CHECK_EQ(cpb_reactor_create(&reactor, kind, false, runners), CPB_OK);
    handled = 0;
    cpb_reactor_hold(reactor);
    for (unsigned i = 0; i < runners; i++)
        CHECK_EQ(pthread_create(&run[i], NULL, run_context, reactor), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&post[i], NULL, post_many, reactor), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(post[i], NULL);
    cpb_reactor_release(reactor);
    for (unsigned i = 0; i < runners; i++)
        pthread_join(run[i], NULL);
    CHECK_EQ(handled, 2 * POSTS);
    cpb_reactor_destroy(reactor);
}

/* A transfer that is larger than the kernel's buffers, both ends on several threads. */
static void
test_large(cpb_reactor_kind kind, unsigned runners)
{
    enum { BYTES = 1 << 20 };
    static unsigned char out[BYTES], in[BYTES];
    fixture on = {0};
    open_fixture(&on, kind, false, runners);
    cpb_actor other = {0};
    pthread_t run[RUNNERS];
    counted reader = {0}, writer = {0};
    for (unsigned i = 0; i < BYTES; i++)
        out[i] = (unsigned char)(i * 2654435761u >> 24);
    memset(in, 0, BYTES);
    begin(&writer, &on, &on.left, CPB_OP_WRITE, out, BYTES, true);
    begin(&reader, &on, &on.right, CPB_OP_READ, in, BYTES, true);
    reader.op.actor = &other;
    CHECK(!cpb_op_start(&writer.op));
    CHECK(!cpb_op_start(&reader.op));
    for (unsigned i = 1; i < runners; i++)
        CHECK_EQ(pthread_create(&run[i], NULL, run_context, on.reactor), 0);
    CHECK_EQ(cpb_reactor_run(on.reactor), CPB_OK);
    for (unsigned i = 1; i < runners; i++)
        pthread_join(run[i], NULL);
    CHECK_EQ(writer.calls, 1);
    CHECK_EQ(reader.calls, 1);
    CHECK_EQ(reader.op.result, BYTES);
    CHECK(memcmp(in, out, BYTES) == 0);
    close_fixture(&on);
}

static void
test_histogram(void)
{
    static cpb_histogram one, two;
    for (size_t i = 0; i + 1 < CPB_HISTOGRAM_BUCKETS; i++) {
        CHECK_EQ(cpb_histogram_index(cpb_histogram_low(i)), i);
        CHECK_EQ(cpb_histogram_index(cpb_histogram_high(i)), i);
    }
    CHECK_EQ(cpb_histogram_index(UINT64_MAX), CPB_HISTOGRAM_BUCKETS - 1);
    cpb_histogram_record(&one, 12345);
    cpb_histogram_record(&two, 7);
    cpb_histogram_record(&two, UINT64_C(1) << 50);
    cpb_histogram_merge(&one, &two);
    CHECK_EQ(one.count, 3);
    CHECK_EQ(one.min, 7);
    CHECK_EQ(one.max, UINT64_C(1) << 50);
    CHECK_EQ(one.sum, 12345 + 7 + (UINT64_C(1) << 50));
    CHECK_EQ(one.bucket[cpb_histogram_index(12345)], 1);
}

int
main(void)
{
    CHECK_BEGIN();
    test_histogram();
    for (int kind = CPB_REACTOR_EPOLL; kind <= CPB_REACTOR_URING; kind++) {
        const char *reason = cpb_reactor_unavailable((cpb_reactor_kind)kind);
        if (reason != NULL) {
            printf("not tried: %s\n", reason);
            continue;
        }
        for (int lockless = 0; lockless < 2; lockless++) {
            test_wait((cpb_reactor_kind)kind, lockless);
            test_cancel((cpb_reactor_kind)kind, lockless);
            test_timers((cpb_reactor_kind)kind, lockless);
            test_stop((cpb_reactor_kind)kind, lockless);
        }
        test_budget((cpb_reactor_kind)kind);
        for (unsigned runners = 1; runners <= RUNNERS; runners++) {
            test_threads((cpb_reactor_kind)kind, runners);
            test_large((cpb_reactor_kind)kind, runners);
        }
    }
    return CHECK_END();
}
