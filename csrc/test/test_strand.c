/* A strand under several threads: one item at a time, none lost, in the order of one poster. The thread sanitizer
 * watches the plain counter that every item changes. */
#include <pthread.h>

#include "check.h"
#include "rt/bench_executor.h"
#include "rt/strand.h"

#define THREADS 4
#define ITEMS 500

static uint64_t counter; /* changed by items only: the strand is its lock */
static int inside;

typedef struct item {
    cpb_frame frame;
    cpb_continuation self;
    uint64_t *last; /* the poster's last index seen */
    uint64_t index;
} item;

static cpb_frame *
run_item(cpb_frame *frame)
{
    item *self = (item *)(void *)frame;
    CHECK_EQ(++inside, 1);
    counter++;
    CHECK_EQ(*self->last + 1, self->index);
    *self->last = self->index;
    inside--;
    return NULL;
}

typedef struct poster {
    cpb_executor strand;
    item items[ITEMS];
    uint64_t last;
} poster;

static void *
post_all(void *argument)
{
    poster *self = argument;
    for (size_t i = 0; i < ITEMS; i++) {
        item *next = &self->items[i];
        next->frame.resume = run_item;
        next->self.frame = &next->frame;
        next->last = &self->last;
        next->index = i + 1;
        cpb_executor_post(&self->strand, &next->self);
    }
    return NULL;
}

static void
test_many_threads(void)
{
    static poster posters[THREADS];
    pthread_t threads[THREADS];
    cpb_bench_context context = {cpb_recycling_resource()};
    cpb_strand_service service;
    cpb_strand strand;
    cpb_strand_service_init(&service);
    CHECK_EQ(cpb_strand_init(&strand, &service, cpb_bench_executor(&context)), CPB_OK);
    for (int i = 0; i < THREADS; i++) {
        posters[i].strand = cpb_strand_executor(&strand);
        CHECK_EQ(pthread_create(&threads[i], NULL, post_all, &posters[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(counter, THREADS * ITEMS);
    CHECK_EQ(strand.impl->references, 1);
    cpb_strand_fini(&strand);
    cpb_strand_service_fini(&service);
}

int
main(void)
{
    CHECK_BEGIN();
    test_many_threads();
    return CHECK_END();
}
