/* Costs of one uncontended launch: three mutex pairs (enter, take, check), two seq_cst stores of the running thread's
 * id, one exchange and one compare-exchange on the cached frame, one share of the strand for the invoker, one
 * type-erased post.
 *
 * `locked` says that an invoker is responsible for the queue: whoever pushes while it is false makes one. The id is
 * cleared after the last unlock, as in the original; a late clear can only make a dispatch enqueue that could have run
 * inline. */
#include "rt/strand.h"

#include <stdlib.h>
#include <string.h>

#include "alloc/heap.h"
#include "base/atomic.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "capybench.h"

#define NO_THREAD ((uintptr_t)0)

typedef struct invoker {
    cpb_frame frame;
    cpb_continuation self;
    cpb_strand_impl *impl; /* a share */
} invoker;

void
cpb_strand_service_init(cpb_strand_service *service)
{
    memset(service, 0, sizeof *service);
}

void
cpb_strand_service_fini(cpb_strand_service *service)
{
    for (size_t i = 0; i < CPB_STRAND_MUTEXES; i++) {
        if (service->mutexes[i] != NULL) {
            pthread_mutex_destroy(service->mutexes[i]);
            free(service->mutexes[i]);
        }
    }
    cpb_heap_free(cpb_atomic_load_relaxed(&service->cached_invoker));
    memset(service, 0, sizeof *service);
}

static pthread_mutex_t *
borrow_mutex(cpb_strand_service *service, const cpb_strand_impl *impl)
{
    size_t slot = ((uintptr_t)impl >> 4) % CPB_STRAND_MUTEXES;
    if (service->mutexes[slot] == NULL) {
        pthread_mutex_t *mutex = malloc(sizeof *mutex);
        if (mutex == NULL)
            return NULL;
        pthread_mutex_init(mutex, NULL);
        service->mutexes[slot] = mutex;
    }
    return service->mutexes[slot];
}

int
cpb_strand_init(cpb_strand *strand, cpb_strand_service *service, cpb_executor inner)
{
    cpb_strand_impl *impl = calloc(1, sizeof *impl);
    if (impl == NULL)
        return CPB_E_NO_MEMORY;
    impl->mutex = borrow_mutex(service, impl);
    if (impl->mutex == NULL) {
        free(impl);
        return CPB_E_NO_MEMORY;
    }
    if (cpb_atomic_load_relaxed(&service->cached_invoker) == NULL) {
        /* So that memory can run out here, where it can be reported, and not in a post. */
        void *frame = cpb_heap_alloc(sizeof(invoker));
        if (frame == NULL) {
            free(impl);
            return CPB_E_NO_MEMORY;
        }
        cpb_atomic_store_release(&service->cached_invoker, frame);
    }
    impl->references = 1;
    atomic_init(&impl->running_thread, NO_THREAD);
    atomic_init(&impl->service, service);
    strand->inner = inner;
    strand->impl = impl;
    return CPB_OK;
}

static void
drop_impl(cpb_strand_impl *impl)
{
    if (cpb_ref_add(&impl->references, -1) == 1)
        free(impl);
}

void
cpb_strand_fini(cpb_strand *strand)
{
    if (strand->impl != NULL)
        drop_impl(strand->impl);
    strand->impl = NULL;
}

/* Answers whether the caller has to make the invoker. */
static bool
push(cpb_strand_impl *impl, cpb_continuation *continuation)
{
    continuation->next = NULL;
    cpb_mutex_lock(impl->mutex);
    CPB_COUNT(CPB_FIFO_PUSHES);
    if (impl->tail != NULL)
        impl->tail->next = continuation;
    else
        impl->head = continuation;
    impl->tail = continuation;
    bool need_invoker = !impl->locked;
    impl->locked = true;
    cpb_mutex_unlock(impl->mutex);
    return need_invoker;
}

static cpb_continuation *
take_all(cpb_strand_impl *impl)
{
    cpb_mutex_lock(impl->mutex);
    cpb_continuation *first = impl->head;
    impl->head = NULL;
    impl->tail = NULL;
    cpb_mutex_unlock(impl->mutex);
    return first;
}

/* Answers whether the queue was empty, in which case the strand is unlocked. */
static bool
finish_if_empty(cpb_strand_impl *impl)
{
    cpb_mutex_lock(impl->mutex);
    bool empty = impl->head == NULL;
    if (empty)
        impl->locked = false;
    cpb_mutex_unlock(impl->mutex);
    return empty;
}

/* Resumes one item with the thread's frame allocator saved around it. */
CPB_NOINLINE static void
run_item(cpb_frame *frame)
{
    cpb_resource *saved = cpb_frame_allocator;
    cpb_frame_drive(frame);
    cpb_frame_allocator = saved;
}

static void
release_invoker(invoker *self)
{
    cpb_strand_impl *impl = self->impl;
    cpb_strand_service *service = cpb_atomic_load_relaxed(&impl->service);
    drop_impl(impl);
    void *empty = NULL;
    if (!cpb_atomic_cas_release(&service->cached_invoker, &empty, (void *)self))
        cpb_heap_free(self);
}

CPB_NOINLINE static cpb_frame *
resume_invoker(cpb_frame *frame)
{
    invoker *self = (invoker *)(void *)frame;
    cpb_strand_impl *impl = self->impl;
    do {
        cpb_atomic_store_seq_cst(&impl->running_thread, (uintptr_t)pthread_self());
        cpb_continuation *item = take_all(impl);
        while (item != NULL) {
            /* Read first: the item's owner may reuse the link or be gone afterwards. */
            cpb_continuation *next = item->next;
            run_item(item->frame);
            item = next;
        }
    } while (!finish_if_empty(impl));
    cpb_atomic_store_seq_cst(&impl->running_thread, NO_THREAD);
    release_invoker(self);
    return NULL;
}

static void
destroy_invoker(cpb_frame *frame)
{
    release_invoker((invoker *)(void *)frame);
}

CPB_NOINLINE static invoker *
make_invoker(cpb_strand_impl *impl)
{
    cpb_strand_service *service = cpb_atomic_load_relaxed(&impl->service);
    invoker *self = cpb_atomic_exchange_acquire(&service->cached_invoker, NULL);
    if (self == NULL)
        self = cpb_heap_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    CPB_COUNT(CPB_INVOKER_FRAMES);
    self->frame = (cpb_frame){resume_invoker, destroy_invoker, 0};
    self->self = (cpb_continuation){&self->frame, NULL};
    self->impl = impl;
    cpb_ref_add(&impl->references, 1);
    return self;
}

static void
enqueue(cpb_strand *strand, cpb_continuation *continuation)
{
    if (!push(strand->impl, continuation))
        return;
    invoker *self = make_invoker(strand->impl);
    if (CPB_UNLIKELY(self == NULL))
        abort(); /* Only where invokers of one service overlap and memory is out: a post has nobody to tell. */
    cpb_executor_post(&strand->inner, &self->self);
}

static cpb_frame *
strand_dispatch(void *object, cpb_continuation *continuation)
{
    cpb_strand *strand = object;
    if (cpb_atomic_load_seq_cst(&strand->impl->running_thread) == (uintptr_t)pthread_self())
        return continuation->frame;
    enqueue(strand, continuation);
    return NULL;
}

static void
strand_post(void *object, cpb_continuation *continuation)
{
    enqueue(object, continuation);
}

static const cpb_executor_table strand_table = {
    .dispatch = strand_dispatch,
    .post = strand_post,
};

cpb_executor
cpb_strand_executor(cpb_strand *strand)
{
    return (cpb_executor){&strand_table, cpb_launder(strand)};
}
