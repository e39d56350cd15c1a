/* The sender pipelines of suite `read_stream`: repeat { read | then(count down) } until done, on the pool
 * (specification C.7).
 *
 * stdexec family: each iteration destroys the child op, connects the next in its place and starts it behind a
 * trampoline, which runs inline up to 16 deep and 4096 bytes of stack, and beyond that queues the op for the outermost
 * frame. Repeat and clean-up go through virtual members. Beman family: a local loop, at most 19 deep, then a flag that
 * the outermost iteration sees. */
#include <stdlib.h>

#include "alloc/counting.h"
#include "base/atomic.h"
#include "suites/read_stream_parts.h"

#define TRAMPOLINE_DEPTH 16u
#define TRAMPOLINE_BYTES 4096u
#define LOCAL_DEPTH 19u

typedef struct pipeline pipeline;
typedef struct pipeline_table {
    void (*cleanup)(pipeline *self);
    void (*repeat)(pipeline *self);
} pipeline_table;

struct pipeline {
    const pipeline_table *table;
    cpb_reader *reader;
    void *stream; /* of its kind and side */
    uint64_t left;
    cpb_awaitable awaitable;
    cpb_sender_read read;
    cpb_frame fake;
    cpb_env posting;
    pipeline *queued; /* link in a trampoline's list */
    struct local_loop *loop;
    char buffer[CPB_READ_BYTES];
};

/* The outermost trampoline of a thread lives on its stack. */
typedef struct trampoline {
    unsigned depth;
    uintptr_t origin;
    pipeline *first;
} trampoline;

static CPB_THREAD_LOCAL trampoline *current_trampoline;

/* The Beman-like loop's state stands on its outermost iteration's stack, since the pipeline is gone when it ends. */
typedef struct local_loop {
    unsigned depth;
    bool again; /* the loop was left at its deepest: the outermost iteration goes on */
} local_loop;

typedef struct traits {
    cpb_sender_family family;
    cpb_stream_kind kind;
    bool sender;
    void (*execute)(cpb_work *);
    cpb_set_value set_value;
    cpb_frame *(*fake_resume)(cpb_frame *);
    void (*start_child)(pipeline *);
} traits;

static void
finish(pipeline *self)
{
    cpb_reader *reader = self->reader;
    free(self);
    cpb_reader_finish(reader);
}

/* Runs `start` inline, or queues it when the trampoline is too deep. */
CPB_TEMPLATE void
trampoline_run(pipeline *self, void (*start)(pipeline *))
{
    trampoline *current = current_trampoline;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (current != NULL) {
        if (current->depth < TRAMPOLINE_DEPTH && current->origin - here < TRAMPOLINE_BYTES) {
            current->depth++;
            start(self);
        } else {
            self->queued = current->first;
            current->first = self;
        }
        return;
    }
    trampoline outermost = {1, here, NULL};
    current_trampoline = &outermost;
    start(self);
    while (outermost.first != NULL) {
        pipeline *next = outermost.first;
        outermost.first = next->queued;
        outermost.depth = 1;
        start(next);
    }
    current_trampoline = NULL;
}

/* The next iteration, nested in the one before up to the limit; there only the flag is raised. The empty asm keeps the
 * call from becoming a jump, which would make the nesting a loop. */
CPB_TEMPLATE void
repeat_locally(pipeline *self, void (*start)(pipeline *))
{
    if (self->loop->depth == LOCAL_DEPTH) {
        self->loop->again = true;
        return;
    }
    self->loop->depth++;
    start(self);
    __asm__ volatile("");
}

/* The outermost iteration: runs a child, which may go on to the pipeline's end, until none left its loop at the
 * deepest. */
CPB_TEMPLATE void
outermost(pipeline *self, void (*start)(pipeline *))
{
    local_loop loop;
    self->loop = &loop;
    do {
        loop.depth = 0;
        loop.again = false;
        start(self);
    } while (loop.again);
}

/* then(count down): the end of one read. */
CPB_TEMPLATE void
child_done(pipeline *self, uint64_t code, size_t bytes, const traits t)
{
    cpb_reader_count(self->reader, code + (t.sender && self->read.failed), bytes);
    if (CPB_UNLIKELY(--self->left == 0)) {
        if (t.sender)
            cpb_sender_end(t.family, t.kind, &self->read);
        finish(self);
        return;
    }
    if (t.family == CPB_STDEXEC) {
        CPB_INDIRECT(self->table->cleanup)(self);
        CPB_INDIRECT(self->table->repeat)(self);
        return;
    }
    if (t.sender)
        cpb_sender_end(t.family, t.kind, &self->read);
    repeat_locally(self, t.start_child);
}

CPB_TEMPLATE void
start_child(pipeline *self, const traits t)
{
    cpb_reader *reader = self->reader;
    bool complete;
    if (t.sender) {
        complete =
            cpb_sender_begin(t.family, t.kind, &self->read, self->stream, &reader->pool, t.execute, t.set_value, self);
        if (complete && t.kind == CPB_SYNC) {
            child_done(self, 0, 0, t);
        } else if (CPB_UNLIKELY(complete)) {
            reader->errors++; /* no memory */
            finish(self);
        }
        return;
    }
    self->posting =
        (cpb_env){cpb_adapter_executor(t.family, &reader->adapter), &reader->stop, cpb_recycling_resource()};
    self->fake.resume = t.fake_resume;
    struct iovec buffer = {self->buffer, sizeof self->buffer};
    complete =
        cpb_awaitable_begin(t.kind, self->stream, &self->awaitable, buffer, &self->fake, &self->posting) == &self->fake;
    if (!complete)
        return;
    cpb_read_result result = cpb_awaitable_end(t.kind, self->stream);
    child_done(self, result.code, result.bytes, t);
}

/* A completion that comes from the pool starts a new stack, so the Beman-like loop begins anew; a child that waits ends
 * it. */
CPB_TEMPLATE void
resumed(pipeline *self, uint64_t code, size_t bytes, const traits t)
{
    local_loop loop = {0, false};
    if (t.family == CPB_BEMAN)
        self->loop = &loop;
    child_done(self, code, bytes, t);
}

static pipeline *
make_pipeline(cpb_reader *reader, void *stream, uint64_t reads, const pipeline_table *table)
{
    pipeline *self = calloc(1, sizeof *self);
    if (self == NULL) {
        reader->errors++;
        cpb_reader_finish(reader);
        return NULL;
    }
    self->table = table;
    self->reader = reader;
    self->stream = stream;
    self->left = reads;
    return self;
}

#define INSTANCE(name, family_, kind_, sender_)                                                                        \
    static void name##_execute(cpb_work *work);                                                                        \
    static void name##_set_value(void *context, size_t bytes);                                                         \
    static cpb_frame *name##_fake(cpb_frame *frame);                                                                   \
    static void name##_start_child(pipeline *self);                                                                    \
    static const traits name##_traits = {family_,          kind_,       sender_,           name##_execute,             \
                                         name##_set_value, name##_fake, name##_start_child};                           \
    static void name##_execute(cpb_work *work)                                                                         \
    {                                                                                                                  \
        resumed(CPB_CONTAINER_OF(work, pipeline, read.work), 0, 0, name##_traits);                                     \
    }                                                                                                                  \
    static void name##_set_value(void *context, size_t bytes)                                                          \
    {                                                                                                                  \
        resumed(context, 0, bytes, name##_traits);                                                                     \
    }                                                                                                                  \
    static cpb_frame *name##_fake(cpb_frame *frame)                                                                    \
    {                                                                                                                  \
        pipeline *self = CPB_CONTAINER_OF(frame, pipeline, fake);                                                      \
        cpb_read_result result = cpb_awaitable_end(kind_, self->stream);                                               \
        uint64_t code = self->posting.stop->stop_requested ? 1 : result.code;                                          \
        resumed(self, code, result.bytes, name##_traits);                                                              \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    CPB_NOINLINE static void name##_start_child(pipeline *self)                                                        \
    {                                                                                                                  \
        start_child(self, name##_traits);                                                                              \
    }                                                                                                                  \
    CPB_NOINLINE static void name##_cleanup(pipeline *self)                                                            \
    {                                                                                                                  \
        if (sender_)                                                                                                   \
            cpb_sender_end(family_, kind_, &self->read);                                                               \
    }                                                                                                                  \
    CPB_NOINLINE static void name##_repeat(pipeline *self)                                                             \
    {                                                                                                                  \
        trampoline_run(self, name##_start_child);                                                                      \
    }                                                                                                                  \
    static const pipeline_table name##_table = {name##_cleanup, name##_repeat};                                        \
    static void name##_start(cpb_reader *reader, uint64_t reads)                                                       \
    {                                                                                                                  \
        void *stream = sender_ ? (void *)cpb_sender_stream_of(kind_, &reader->senders)                                 \
                               : cpb_awaitable_stream(kind_, &reader->awaitables);                                     \
        pipeline *self = make_pipeline(reader, stream, reads, &name##_table);                                          \
        if (self == NULL)                                                                                              \
            return;                                                                                                    \
        if (family_ == CPB_STDEXEC) {                                                                                  \
            trampoline_run(self, name##_start_child);                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        outermost(self, name##_start_child);                                                                           \
    }

#define PIPELINE(name, family, sender)                                                                                 \
    INSTANCE(name##_native, family, CPB_NATIVE, sender)                                                                \
    INSTANCE(name##_abstract, family, CPB_ABSTRACT, sender)                                                            \
    INSTANCE(name##_erased, family, CPB_ERASED, sender)                                                                \
    INSTANCE(name##_sync, family, CPB_SYNC, sender)                                                                    \
    const cpb_pipeline_start cpb_##name[4] = {name##_native_start, name##_abstract_start, name##_erased_start,         \
                                              name##_sync_start};

PIPELINE(pipeline_sender_stdexec, CPB_STDEXEC, true)
PIPELINE(pipeline_awaitable_stdexec, CPB_STDEXEC, false)
PIPELINE(pipeline_sender_beman, CPB_BEMAN, true)
PIPELINE(pipeline_awaitable_beman, CPB_BEMAN, false)
