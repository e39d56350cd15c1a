/* sender.h: read streams whose read_some is a sender, the two type-erased senders, schedulers and the executor adapter
 * that lets an awaitable post to a sender pool (specification C.2, C.5, C.7, C.8).
 *
 * Concrete senders are a work item inside the consumer's op-state and inline into it. Across an erasure boundary
 * everything is a call through a const table of another translation unit.
 *
 * stdexec family: the sender's payload is larger than the 24 inline bytes (counted heap), its op-state larger than the
 * 64 inline bytes (counted heap); work-stealing pool; the adapter's op is freed after the resumed continuation has
 * returned. Beman family: 64 inline bytes hold the sender; the op comes from the counting resource; mutex pool; the
 * adapter's op is freed before it resumes. */
#ifndef CPB_STREAM_SENDER_H
#define CPB_STREAM_SENDER_H

#include "rt/pool.h"
#include "stream/awaitable.h"

typedef enum cpb_sender_family { CPB_STDEXEC, CPB_BEMAN } cpb_sender_family;

/* Called with a read's bytes when an erased op completes. */
typedef void (*cpb_set_value)(void *context, size_t bytes);

/* stdexec-like */
typedef struct cpb_sx_operation cpb_sx_operation;
typedef struct cpb_sx_operation_table {
    void (*start)(cpb_sx_operation *self);
    void (*destroy)(cpb_sx_operation *self);
} cpb_sx_operation_table;
struct cpb_sx_operation {
    const cpb_sx_operation_table *table;
    union {
        void *heap;
        unsigned char bytes[64];
    } store;
};

typedef struct cpb_sx_sender cpb_sx_sender;
typedef struct cpb_sx_sender_table {
    bool (*connect)(cpb_sx_sender *self, cpb_set_value set_value, void *context, cpb_sx_operation *out);
    void (*destroy)(cpb_sx_sender *self);
} cpb_sx_sender_table;
struct cpb_sx_sender {
    const cpb_sx_sender_table *table;
    union {
        void *heap;
        unsigned char bytes[24];
    } store;
};

/* Beman-like */
typedef struct cpb_bx_operation cpb_bx_operation;
typedef struct cpb_bx_operation_table {
    void (*start)(cpb_bx_operation *self);
    void (*destroy)(cpb_bx_operation *self);
} cpb_bx_operation_table;
struct cpb_bx_operation {
    const cpb_bx_operation_table *table;
    cpb_work work;
    cpb_pool *pool;
    cpb_set_value set_value;
    void *context;
};

typedef struct cpb_bx_sender {
    cpb_bx_operation *(*factory)(const unsigned char *bytes, cpb_set_value set_value, void *context);
    unsigned char bytes[64];
} cpb_bx_sender;

/* Streams behind an interface: read_some answers an any-sender by value. False when there is no memory. */
typedef struct cpb_sender_stream cpb_sender_stream;
typedef struct cpb_sender_stream_table {
    bool (*read_stdexec)(cpb_sender_stream *self, cpb_sx_sender *out);
    bool (*read_beman)(cpb_sender_stream *self, cpb_bx_sender *out);
} cpb_sender_stream_table;
struct cpb_sender_stream {
    const cpb_sender_stream_table *table;
    void *model; /* the pool, or what the wrapper wraps */
};

typedef struct cpb_sender_streams {
    cpb_sender_stream model, wrapper;
    cpb_sender_stream *abstract, *erased;
} cpb_sender_streams;

void cpb_sender_streams_init(cpb_sender_streams *streams, cpb_pool *pool);

/* A sender read inside a consumer's op-state: concrete work item, or one of the erased pairs. */
typedef struct cpb_sender_read {
    cpb_work work;
    union {
        struct {
            cpb_sx_sender sender;
            cpb_sx_operation operation;
        } sx;
        struct {
            cpb_bx_sender sender;
            cpb_bx_operation *operation;
        } bx;
    } any;
    bool failed; /* there was no memory; nothing is to be destroyed */
} cpb_sender_read;

/* The stream of a kind, for its consumer to keep; concrete kinds need none. */
CPB_TEMPLATE cpb_sender_stream *
cpb_sender_stream_of(cpb_stream_kind kind, cpb_sender_streams *streams)
{
    if (kind == CPB_ABSTRACT)
        return streams->abstract;
    return kind == CPB_ERASED ? streams->erased : NULL;
}

/* Makes, connects and starts one read. True when it is complete (sync, or out of memory, which `failed` tells): the
 * consumer goes on itself; false when `execute` (concrete) or `set_value` (erased) will be called, after which nothing
 * of it may be touched here. */
CPB_TEMPLATE bool
cpb_sender_begin(cpb_sender_family family, cpb_stream_kind kind, cpb_sender_read *read, cpb_sender_stream *stream,
                 cpb_pool *pool, void (*execute)(cpb_work *), cpb_set_value set_value, void *context)
{
    if (kind == CPB_SYNC)
        return true;
    if (kind == CPB_NATIVE) {
        if (family == CPB_STDEXEC)
            cpb_sink((uint64_t)(uintptr_t)cpb_pool_ask_scheduler(pool));
        read->work.execute = execute;
        cpb_pool_push(pool, family == CPB_STDEXEC ? CPB_POOL_STEAL : CPB_POOL_MUTEX, &read->work);
        return false;
    }
    if (family == CPB_STDEXEC) {
        read->failed = !CPB_INDIRECT(stream->table->read_stdexec)(stream, &read->any.sx.sender);
        if (CPB_UNLIKELY(read->failed))
            return true;
        cpb_sx_sender *sender = &read->any.sx.sender;
        read->failed = !CPB_INDIRECT(sender->table->connect)(sender, set_value, context, &read->any.sx.operation);
        if (CPB_UNLIKELY(read->failed)) {
            CPB_INDIRECT(sender->table->destroy)(sender);
            return true;
        }
        CPB_INDIRECT(read->any.sx.operation.table->start)(&read->any.sx.operation);
        return false;
    }
    /* By value out of the stream, then into the op-state: the bytes are copied twice. */
    cpb_bx_sender made;
    if (CPB_UNLIKELY(!CPB_INDIRECT(stream->table->read_beman)(stream, &made))) {
        read->failed = true;
        return true;
    }
    cpb_escape(&made);
    read->any.bx.sender = made;
    read->any.bx.operation = CPB_INDIRECT(read->any.bx.sender.factory)(read->any.bx.sender.bytes, set_value, context);
    read->failed = read->any.bx.operation == NULL;
    if (CPB_UNLIKELY(read->failed))
        return true;
    CPB_INDIRECT(read->any.bx.operation->table->start)(read->any.bx.operation);
    return false;
}

/* Destroys the op and the sender of a read that has completed. */
CPB_TEMPLATE void
cpb_sender_end(cpb_sender_family family, cpb_stream_kind kind, cpb_sender_read *read)
{
    if (kind == CPB_SYNC || kind == CPB_NATIVE || CPB_UNLIKELY(read->failed))
        return;
    if (family == CPB_STDEXEC) {
        CPB_INDIRECT(read->any.sx.operation.table->destroy)(&read->any.sx.operation);
        CPB_INDIRECT(read->any.sx.sender.table->destroy)(&read->any.sx.sender);
    } else {
        CPB_INDIRECT(read->any.bx.operation->table->destroy)(read->any.bx.operation);
    }
}

/* A type-erased scheduler, as exec::task keeps the one that it was started on (specification C.8). */
typedef struct cpb_any_scheduler cpb_any_scheduler;
typedef struct cpb_schedule_sender cpb_schedule_sender;
typedef struct cpb_schedule_operation cpb_schedule_operation;

struct cpb_schedule_operation {
    const struct cpb_schedule_operation_table *table;
    cpb_work work;
    cpb_any_scheduler *scheduler;
    cpb_set_value set_value;
    void *context;
    unsigned char environment[40]; /* stop token and receiver plumbing: above the 64 inline bytes */
};
typedef struct cpb_schedule_operation_table {
    void (*start)(cpb_schedule_operation *self);
    void (*destroy)(cpb_schedule_operation *self);
} cpb_schedule_operation_table;

struct cpb_schedule_sender {
    cpb_schedule_operation *(*connect)(const cpb_schedule_sender *self, cpb_set_value set_value, void *context);
    cpb_any_scheduler *scheduler;
};

typedef struct cpb_any_scheduler_table {
    void (*copy)(cpb_any_scheduler *self);
    void (*drop)(cpb_any_scheduler *self);
    void (*schedule)(cpb_any_scheduler *self, cpb_schedule_sender *out);
} cpb_any_scheduler_table;

struct cpb_any_scheduler {
    const cpb_any_scheduler_table *table;
    int64_t references;
    cpb_pool *pool;
};

void cpb_any_scheduler_init(cpb_any_scheduler *scheduler, cpb_pool *pool);

/* The executor through which a Capy awaitable posts to a sender pool: one heap-made op per post. A post cannot report
 * an error, so without memory it records the failure and uses a spare op: two, since a stdexec op is freed after the
 * next one was made. One chain at a time uses an adapter. */
typedef struct cpb_posted {
    cpb_work work;
    cpb_frame *frame;
    struct cpb_adapter *spare_of; /* NULL: from the heap */
} cpb_posted;

typedef struct cpb_adapter {
    cpb_pool *pool;
    cpb_posted spares[2];
    unsigned next_spare;
    bool failed;
} cpb_adapter;

void cpb_adapter_init(cpb_adapter *adapter, cpb_pool *pool);
cpb_executor cpb_adapter_executor(cpb_sender_family family, cpb_adapter *adapter);

#endif
