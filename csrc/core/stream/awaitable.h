/* awaitable.h: read streams whose read_some is an awaitable (specification C.2), in four kinds.
 *
 * native: a concrete type; the awaitable posts its continuation. abstract: read_some is virtual and answers the same
 * awaitable. erased: a wrapper owns storage for the awaitable, and every step goes through its table. sync: the
 * awaitable continues at once. No kind allocates per read. The functions are always inlined with a constant kind, as
 * templates are. */
#ifndef CPB_STREAM_AWAITABLE_H
#define CPB_STREAM_AWAITABLE_H

#include <sys/uio.h>

#include "rt/executor.h"

#define CPB_TEMPLATE static inline __attribute__((always_inline))

typedef enum cpb_stream_kind { CPB_NATIVE, CPB_ABSTRACT, CPB_ERASED, CPB_SYNC } cpb_stream_kind;

/* What a read answers: an error code of two words, and the bytes. */
typedef struct cpb_read_result {
    uint64_t code;
    const void *category;
    size_t bytes;
} cpb_read_result;

typedef struct cpb_awaitable {
    cpb_continuation self;
} cpb_awaitable;

typedef struct cpb_read_stream cpb_read_stream;
struct cpb_read_stream {
    void (*const *table)(cpb_read_stream *self, const struct iovec *buffer, cpb_awaitable *out);
};

typedef struct cpb_erased_awaitable_table {
    void (*construct)(void *storage, void *model, const struct iovec *buffer);
    bool (*ready)(void *storage);
    cpb_frame *(*suspend)(void *storage, cpb_frame *frame, const cpb_env *env);
    cpb_read_result (*resume)(void *storage);
    void (*destroy)(void *storage);
} cpb_erased_awaitable_table;

typedef struct cpb_any_read_stream {
    const cpb_erased_awaitable_table *table;
    void *model;
    struct iovec buffers[2];
    _Alignas(16) unsigned char storage[64];
} cpb_any_read_stream;

/* All kinds over one model; pointers are opaque to the optimiser. */
typedef struct cpb_awaitable_streams {
    cpb_read_stream model;
    cpb_read_stream *abstract;
    cpb_any_read_stream any;
    cpb_any_read_stream *erased;
} cpb_awaitable_streams;

void cpb_awaitable_streams_init(cpb_awaitable_streams *streams);

/* The native awaitable's suspension: one trip through the executor's queue. */
CPB_TEMPLATE cpb_frame *
cpb_awaitable_suspend(cpb_awaitable *self, cpb_frame *frame, const cpb_env *env)
{
    self->self.frame = frame;
    cpb_executor_post(&env->executor, &self->self);
    return NULL;
}

/* The stream of a kind, for its consumer to keep: a reference to an interface or to a wrapper; concrete kinds need
 * none.
 */
CPB_TEMPLATE void *
cpb_awaitable_stream(cpb_stream_kind kind, cpb_awaitable_streams *streams)
{
    if (kind == CPB_ABSTRACT)
        return streams->abstract;
    return kind == CPB_ERASED ? streams->erased : NULL;
}

/* Begins a read for `frame`: answers NULL when it waits, `frame` when it goes on at once. Nothing may be touched after
 * NULL. */
CPB_TEMPLATE cpb_frame *
cpb_awaitable_begin(cpb_stream_kind kind, void *stream, cpb_awaitable *awaitable, struct iovec buffer, cpb_frame *frame,
                    const cpb_env *env)
{
    switch (kind) {
    case CPB_ABSTRACT: {
        cpb_read_stream *abstract = stream;
        CPB_INDIRECT (*abstract->table)(abstract, &buffer, awaitable);
        return cpb_awaitable_suspend(awaitable, frame, env);
    }
    case CPB_ERASED: {
        cpb_any_read_stream *any = stream;
        any->buffers[0] = buffer;
        CPB_INDIRECT(any->table->construct)(any->storage, any->model, any->buffers);
        if (CPB_INDIRECT(any->table->ready)(any->storage))
            return frame;
        return CPB_INDIRECT(any->table->suspend)(any->storage, frame, env);
    }
    case CPB_SYNC:
        return frame;
    default:
        return cpb_awaitable_suspend(awaitable, frame, env);
    }
}

/* Ends a read: its result. */
CPB_TEMPLATE cpb_read_result
cpb_awaitable_end(cpb_stream_kind kind, void *stream)
{
    if (kind != CPB_ERASED)
        return (cpb_read_result){0, NULL, 0};
    cpb_any_read_stream *any = stream;
    cpb_read_result result = CPB_INDIRECT(any->table->resume)(any->storage);
    CPB_INDIRECT(any->table->destroy)(any->storage);
    return result;
}

#endif
