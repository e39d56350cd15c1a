/* The parts of suites channel and op_alloc: buffers and their rules, the thread's cache, the scheduler, channels of
 * capacity 0 and 1, gather. */
#include "alloc/heap.h"
#include "alloc/monotonic.h"
#include "alloc/sbo.h"
#include "alloc/size_pool.h"
#include "alloc/std_resource.h"
#include "alloc/thread_cache.h"
#include "check.h"
#include "rt/channel.h"
#include "rt/direct_channel.h"
#include "rt/gather.h"

static _Alignas(16) unsigned char buffer[1024];

static int
inside(const void *memory)
{
    const unsigned char *block = memory;
    return block >= buffer && block < buffer + sizeof buffer;
}

static void *
take(cpb_resource *resource, size_t size)
{
    void *memory = cpb_resource_allocate(resource, size, 8);
    CHECK(memory != NULL);
    memset(memory, 0xa5, size);
    return memory;
}

static void
test_sbo(void)
{
    cpb_sbo sbo;
    cpb_sbo_init(&sbo, buffer + 8, sizeof buffer - 8, cpb_std_resource());
    CHECK_EQ(sbo.size, 1008); /* the unaligned head is given up */
    cpb_sbo_init(&sbo, buffer, sizeof buffer, cpb_std_resource());
    cpb_resource *resource = &sbo.resource;
    void *a = take(resource, 100), *b = take(resource, 30);
    CHECK_EQ((unsigned char *)b - (unsigned char *)a, 112); /* rounded to 16 */
    cpb_resource_deallocate(resource, b, 30, 8);            /* on top: moves the top back */
    CHECK(!sbo.fragmented);
    void *c = take(resource, 20);
    CHECK(c == b);
    cpb_resource_deallocate(resource, a, 100, 8); /* not on top */
    CHECK(sbo.fragmented);
    void *d = take(resource, 10);
    CHECK(!inside(d)); /* upstream while fragmented */
    cpb_resource_deallocate(resource, d, 10, 8);
    CHECK(sbo.fragmented);
    cpb_resource_deallocate(resource, c, 20, 8); /* everything is back */
    CHECK(!sbo.fragmented);
    CHECK_EQ(sbo.available, sbo.size);
    void *e = take(resource, 1024), *f = take(resource, 1);
    CHECK(e == a);
    CHECK(!inside(f)); /* out of buffer, not fragmented */
    CHECK(!sbo.fragmented);
    cpb_resource_deallocate(resource, f, 1, 8);
    cpb_resource_deallocate(resource, e, 1024, 8);
    cpb_sbo_init(&sbo, buffer + 1, 3, cpb_std_resource()); /* nothing is left of it */
    CHECK_EQ(sbo.size, 0);
}

static void
test_monotonic(void)
{
    cpb_monotonic monotonic;
    cpb_monotonic_init(&monotonic, buffer, sizeof buffer);
    unsigned char *a = cpb_monotonic_allocate(&monotonic, 8, 8);
    CHECK(a == buffer + 8); /* padded although it was aligned */
    CHECK_EQ(monotonic.buffer.available, sizeof buffer - 16);
    unsigned char *b = cpb_monotonic_allocate(&monotonic, 20, 4);
    CHECK(b == buffer + 16 + 4);
    CHECK_EQ(monotonic.buffer.available, sizeof buffer - 40);
    unsigned char *c = cpb_monotonic_allocate(&monotonic, 984, 8); /* would fit but for its padding */
    CHECK(c != NULL && !inside(c));
    CHECK_EQ(monotonic.head->size, 1024); /* the chunk size */
    unsigned char *d = cpb_monotonic_allocate(&monotonic, 32, 8);
    CHECK(d == c + 984 + 8);
    unsigned char *e = cpb_monotonic_allocate(&monotonic, 5000, 8);
    CHECK(e != NULL);
    CHECK_EQ(monotonic.head->size, 5000); /* the request */
    memset(e, 1, 5000);
    cpb_monotonic_release(&monotonic);
    CHECK(monotonic.head == &monotonic.buffer);
    CHECK(cpb_monotonic_allocate(&monotonic, 8, 8) == a);
}

static void
test_pmr_monotonic(void)
{
    cpb_pmr_monotonic monotonic;
    cpb_pmr_monotonic_init(&monotonic, buffer, sizeof buffer, cpb_std_resource());
    cpb_resource *resource = &monotonic.resource;
    CHECK(take(resource, 8) == (void *)buffer); /* no padding where none is needed */
    CHECK(take(resource, 1000) == (void *)(buffer + 8));
    CHECK(take(resource, 16) == (void *)(buffer + 1008));
    void *chunk = take(resource, 1);
    CHECK(!inside(chunk));
    CHECK(monotonic.available >= 1536 - 1); /* half as much again as the buffer */
    CHECK_EQ(monotonic.next_size, 2304);
    void *large = take(resource, 4000);
    CHECK(!inside(large));
    CHECK_EQ(monotonic.next_size, 6000);
    cpb_resource_deallocate(resource, large, 4000, 8); /* nothing */
    memset(large, 1, 4000);
    cpb_pmr_monotonic_release(&monotonic);
    CHECK_EQ(monotonic.next_size, 1536);
    CHECK(take(resource, 8) == (void *)buffer);
}

static void
test_thread_cache(void)
{
    cpb_thread_cache cache = {{{NULL}}};
    void *a = cpb_thread_cache_allocate(&cache, CPB_CACHE_FRAME, 100);
    void *b = cpb_thread_cache_allocate(&cache, CPB_CACHE_FRAME, 100);
    void *c = cpb_thread_cache_allocate(&cache, CPB_CACHE_FRAME, 100);
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_FRAME, a, 100);
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_FRAME, b, 100);
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_FRAME, c, 100);       /* full: to the heap */
    CHECK(cpb_thread_cache_allocate(&cache, CPB_CACHE_FRAME, 60) == a); /* smaller fits */
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_FRAME, a, 60);        /* and its capacity is kept */
    CHECK(cpb_thread_cache_allocate(&cache, CPB_CACHE_FRAME, 100) == a);
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_FRAME, a, 100);
    void *other = cpb_thread_cache_allocate(&cache, CPB_CACHE_OPERATION, 100);
    CHECK(other != a && other != b); /* purposes do not mix */
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_OPERATION, other, 100);
    void *larger = cpb_thread_cache_allocate(&cache, CPB_CACHE_FRAME, 200); /* frees one that is too small */
    CHECK((cache.blocks[CPB_CACHE_FRAME][0] == NULL) != (cache.blocks[CPB_CACHE_FRAME][1] == NULL));
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_FRAME, larger, 200);
    void *huge = cpb_thread_cache_allocate(NULL, CPB_CACHE_GROUP, 1021);
    cpb_thread_cache_deallocate(&cache, CPB_CACHE_GROUP, huge, 1021); /* never cached */
    CHECK(cache.blocks[CPB_CACHE_GROUP][0] == NULL);
    cpb_thread_cache_drain(&cache);
    CHECK(cache.blocks[CPB_CACHE_FRAME][0] == NULL && cache.blocks[CPB_CACHE_FRAME][1] == NULL);
}

static void
test_size_pool(void)
{
    cpb_size_pool pool;
    cpb_size_pool_init(&pool);
    cpb_resource *resource = &pool.resource;
    void *blocks[9];
    for (int i = 0; i < 9; i++)
        blocks[i] = take(resource, 200);
    for (int i = 0; i < 9; i++)
        cpb_resource_deallocate(resource, blocks[i], 200, 16);
    CHECK(take(resource, 129) == blocks[8]); /* last in, first out, by class */
    CHECK(take(resource, 128) != blocks[7]);
    CHECK(take(resource, 16384) != NULL);
    void *large = take(resource, 16385);
    cpb_resource_deallocate(resource, large, 16385, 16);
    cpb_size_pool_destroy(&pool);
}

typedef struct counted {
    cpb_operation operation;
    cpb_any_executor executor;
    int calls, more, destroyed;
} counted;

static void
complete_counted(void *owner, cpb_operation *operation)
{
    counted *self = (counted *)(void *)operation;
    if (owner == NULL) {
        self->destroyed++;
        return;
    }
    self->calls++;
    CHECK(cpb_any_running_here(&self->executor));
    if (self->more-- > 0)
        cpb_any_post(&self->executor, operation);
}

static void
test_scheduler(void)
{
    cpb_scheduler scheduler;
    cpb_scheduler_init(&scheduler);
    counted first = {{NULL, complete_counted}, cpb_scheduler_executor(&scheduler), 0, 3, 0};
    counted second = {{NULL, complete_counted}, first.executor, 0, 1, 0};
    CHECK(!cpb_any_running_here(&first.executor));
    cpb_any_post(&first.executor, &first.operation);
    cpb_any_post(&first.executor, &second.operation);
    CHECK_EQ(cpb_scheduler_run(&scheduler), CPB_OK);
    CHECK_EQ(first.calls, 4);
    CHECK_EQ(second.calls, 2);
    CHECK_EQ(atomic_load(&scheduler.outstanding), 0);
    cpb_any_work_started(&first.executor); /* work that nobody will ever do */
    cpb_any_post(&first.executor, &first.operation);
    CHECK_EQ(cpb_scheduler_run(&scheduler), CPB_E_FAILED);
    CHECK_EQ(first.calls, 5);
    cpb_any_post(&first.executor, &first.operation);
    cpb_scheduler_destroy(&scheduler);
    CHECK_EQ(first.destroyed, 1);
}

/* A channel operation that records what happens to it. */
typedef struct recorded {
    cpb_channel_op op;
    int action; /* -1 while it waits */
    uint64_t value;
} recorded;

static void
record(cpb_channel_op *op, cpb_channel_action action, cpb_payload payload)
{
    recorded *self = (recorded *)(void *)op;
    self->action = (int)action;
    self->value = payload.value;
}

static recorded
make(uint64_t value)
{
    return (recorded){{NULL, record, {0, NULL, value}}, -1, 99};
}

static void
test_channel(void)
{
    cpb_channel channel;
    cpb_any_executor none = {.target = NULL};
    cpb_channel_init(&channel, 0, none);
    recorded s1 = make(1), s2 = make(2), r1 = make(0), r2 = make(0), r3 = make(0), s3 = make(3);
    cpb_channel_send(&channel, &s1.op);
    cpb_channel_send(&channel, &s2.op);
    CHECK_EQ(s1.action, -1);
    cpb_channel_receive(&channel, &r1.op);
    CHECK_EQ(s1.action, CPB_CHANNEL_POST);
    CHECK_EQ(r1.action, CPB_CHANNEL_POST);
    CHECK_EQ(r1.value, 1);
    CHECK_EQ(s2.action, -1);
    cpb_channel_receive(&channel, &r2.op);
    CHECK_EQ(r2.value, 2);
    cpb_channel_receive(&channel, &r3.op);
    CHECK_EQ(r3.action, -1);
    cpb_channel_send(&channel, &s3.op);
    CHECK_EQ(r3.action, CPB_CHANNEL_POST);
    CHECK_EQ(r3.value, 3);
    CHECK(channel.head == NULL);

    cpb_channel_init(&channel, 1, none);
    s1 = make(1), s2 = make(2), s3 = make(3), r1 = make(0), r2 = make(0), r3 = make(0);
    cpb_channel_send(&channel, &s1.op);
    CHECK_EQ(s1.action, CPB_CHANNEL_IMMEDIATE);
    cpb_channel_send(&channel, &s2.op); /* no room */
    CHECK_EQ(s2.action, -1);
    cpb_channel_receive(&channel, &r1.op); /* takes the first, lets the second in */
    CHECK_EQ(r1.action, CPB_CHANNEL_IMMEDIATE);
    CHECK_EQ(r1.value, 1);
    CHECK_EQ(s2.action, CPB_CHANNEL_POST);
    cpb_channel_receive(&channel, &r2.op);
    CHECK_EQ(r2.value, 2);
    cpb_channel_receive(&channel, &r3.op);
    CHECK_EQ(r3.action, -1);
    cpb_channel_destroy(&channel);
    CHECK_EQ(r3.action, CPB_CHANNEL_DESTROY);
}

/* A coroutine that awaits one read or write and counts. */
typedef struct peer {
    cpb_promise promise;
    cpb_direct_op op;
    bool writes;
    int done;
} peer;

static cpb_frame *
resume_peer(cpb_frame *frame)
{
    peer *self = (peer *)(void *)frame;
    if (frame->state == 0) {
        frame->state = 1;
        bool ready = self->writes ? cpb_direct_write_ready(&self->op) : cpb_direct_read_ready(&self->op);
        if (!ready)
            return self->writes ? cpb_direct_write_suspend(&self->op, &self->promise)
                                : cpb_direct_read_suspend(&self->op, &self->promise);
    }
    self->done += self->writes ? cpb_direct_write_resume(&self->op) : cpb_direct_read_resume(&self->op);
    return NULL;
}

static void
init_peer(peer *self, cpb_direct_channel *channel, bool writes)
{
    memset(self, 0, sizeof *self);
    self->promise.frame.resume = resume_peer;
    self->promise.executor = &channel->executor;
    self->writes = writes;
    cpb_direct_op_init(&self->op, channel);
}

static void
test_direct_channel(void)
{
    cpb_scheduler scheduler;
    cpb_direct_channel channel;
    peer writer, reader;
    cpb_scheduler_init(&scheduler);
    for (size_t limit = 0; limit < 2; limit++) {
        for (int writer_first = 0; writer_first < 2; writer_first++) {
            cpb_direct_channel_init(&channel, limit, cpb_scheduler_executor(&scheduler));
            init_peer(&writer, &channel, true);
            init_peer(&reader, &channel, false);
            peer *first = writer_first ? &writer : &reader, *second = writer_first ? &reader : &writer;
            cpb_frame_drive(&first->promise.frame);
            CHECK_EQ(first->done, limit == 1 && writer_first);
            cpb_frame_drive(&second->promise.frame);
            bool posted = first->done + second->done < 2; /* the second, or with a buffer the waiting first */
            CHECK_EQ(posted, limit == 0 || !writer_first);
            if (posted)
                CHECK_EQ(cpb_scheduler_run(&scheduler), CPB_OK);
            CHECK_EQ(writer.done, 1);
            CHECK_EQ(reader.done, 1);
            CHECK_EQ(channel.count, 0);
            CHECK(channel.reads.next == &channel.reads && channel.writes.next == &channel.writes);
        }
    }
    cpb_scheduler_destroy(&scheduler);
}

/* gather of awaitables that are ready, or suspend and are resumed by hand. */
typedef struct step {
    bool ready;
    cpb_frame *waiting;
    int starts;
} step;

static bool
step_ready(step *self)
{
    return self->ready;
}

static cpb_frame *
step_suspend(step *self, cpb_promise *promise)
{
    self->starts++;
    self->waiting = &promise->frame;
    return NULL;
}

static bool
step_take(step *self, cpb_payload *value)
{
    value->value = self->ready ? 1 : 2;
    return true;
}

CPB_DEFINE_FORK(fork_step, step, step_ready, step_suspend, step_take)

static void
test_gather(void)
{
    cpb_scheduler scheduler;
    cpb_scheduler_init(&scheduler);
    cpb_any_executor executor = cpb_scheduler_executor(&scheduler);
    cpb_promise parent = {.executor = &executor};
    cpb_frame_allocator = cpb_std_resource();
    for (int ready = 0; ready < 4; ready++) {
        step steps[2] = {{(ready & 1) != 0, NULL, 0}, {(ready & 2) != 0, NULL, 0}};
        cpb_gather gather;
        cpb_gather_init(&gather, fork_step, &steps[0], fork_step, &steps[1]);
        bool at_once = cpb_gather_ready(&gather, &parent);
        CHECK_EQ(at_once, ready == 3);
        CHECK_EQ(steps[0].starts + steps[1].starts, 0); /* forks pause until all are wired */
        if (!at_once) {
            CHECK(cpb_gather_suspend(&gather, &parent));
            CHECK_EQ(steps[0].starts, !steps[0].ready);
            CHECK_EQ(steps[1].starts, !steps[1].ready);
            cpb_frame *next = NULL;
            for (int i = 0; i < 2; i++) {
                CHECK(next == NULL); /* only the last one answers the parent */
                if (!steps[i].ready)
                    next = steps[i].waiting->resume(steps[i].waiting);
                if (steps[1].ready)
                    break;
            }
            CHECK(next == &parent.frame);
        }
        CHECK(cpb_gather_resume(&gather));
        CHECK_EQ(gather.results[0].value.value, steps[0].ready ? 1 : 2);
        CHECK_EQ(gather.results[1].value.value, steps[1].ready ? 1 : 2);
        CHECK_EQ(gather.use_count, 0);
        CHECK(gather.resource.chunks == NULL); /* both frames fitted the buffer */
        cpb_gather_destroy(&gather);
    }
    cpb_frame_allocator = NULL;
    cpb_scheduler_destroy(&scheduler);
}

int
main(void)
{
    CHECK_BEGIN();
    test_sbo();
    test_monotonic();
    test_pmr_monotonic();
    test_thread_cache();
    test_size_pool();
    test_scheduler();
    test_channel();
    test_direct_channel();
    test_gather();
    return CHECK_END();
}
