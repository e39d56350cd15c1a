/* The coroutine consumers of suite `read_stream`: a session reads 10,000 times in one frame (specification C.6, C.8).
 *
 * Every consumer is a template over sender family, stream kind, side, way of awaiting and affinity, instantiated by the
 * tables at the end: each instance is its own resume function, as each C++ instantiation is.
 *
 * Ways of awaiting. DIRECT: the coroutine awaits a Capy awaitable, or a sender by its as_awaitable member: the frame
 * itself is resumed. BRIDGE: Capy's sender-as-awaitable: connect in place, and a done flag exchanged by both ends.
 * AWAITER: the senders' own task. Beman's exchanges a flag at both ends, too; exec::task's starting thread leaves with
 * one exchange, a completion on that same thread needs none, and one on another thread exchanges. */
#include "alloc/counting.h"
#include "base/atomic.h"
#include "suites/read_stream_parts.h"

typedef enum way { DIRECT, BRIDGE, AWAITER } way;
typedef enum affinity { NO_AFFINITY, NAMED, ERASED_SCHEDULER } affinity;
enum { STARTING, LEFT, COMPLETED };

typedef struct session {
    cpb_task base;
    cpb_reader *reader;
    void *stream; /* of its kind and side */
    uint64_t left;
    cpb_awaitable awaitable;
    cpb_sender_read read;
    cpb_frame fake;  /* what an awaitable-as-sender hands to its awaitable */
    cpb_env posting; /* its environment: the adapter that makes an op per post */
    cpb_work hop;
    cpb_schedule_operation *hop_operation;
    _Atomic(int) phase;
    _Atomic(bool) done;
    pthread_t starter;
    uint64_t code;
    size_t bytes;
    char buffer[CPB_READ_BYTES];
} session;

/* What an instance is made of. */
typedef struct traits {
    cpb_sender_family family;
    cpb_stream_kind kind;
    bool sender; /* the side */
    way how;
    affinity affine;
    void (*execute)(cpb_work *);
    cpb_set_value set_value;
    cpb_frame *(*fake_resume)(cpb_frame *);
    void (*hop_execute)(cpb_work *);
    cpb_set_value hop_set_value;
} traits;

CPB_TEMPLATE void
store(session *self, size_t bytes)
{
    self->bytes = bytes;
    self->code = 0;
}

/* BRIDGE and Beman's awaiter, completing end: whoever comes second resumes the coroutine. */
CPB_TEMPLATE void
exchange_complete(session *self)
{
    if (cpb_atomic_exchange_acq_rel(&self->done, true))
        cpb_frame_drive(&self->base.frame);
}

/* AWAITER, completing end. */
CPB_TEMPLATE void
awaiter_complete(session *self, const traits t)
{
    if (t.family == CPB_BEMAN) {
        exchange_complete(self);
        return;
    }
    if (CPB_LIKELY(pthread_equal(self->starter, pthread_self()))) {
        /* Nothing else runs on this thread: either start() is below us on the stack, or the starter has left. */
        if (cpb_atomic_load_relaxed(&self->phase) == LEFT)
            cpb_frame_drive(&self->base.frame);
        else
            cpb_atomic_store_relaxed(&self->phase, COMPLETED);
        return;
    }
    if (cpb_atomic_exchange_acq_rel(&self->phase, COMPLETED) == LEFT)
        cpb_frame_drive(&self->base.frame);
}

/* The second trip of a task with affinity: back to the scheduler that it was started on, also when it never left. */
CPB_TEMPLATE void
hop(session *self, const traits t)
{
    if (t.affine == NAMED) {
        self->hop.execute = t.hop_execute;
        cpb_pool_push(&self->reader->pool, t.family == CPB_STDEXEC ? CPB_POOL_STEAL : CPB_POOL_MUTEX, &self->hop);
        return;
    }
    cpb_any_scheduler *scheduler = cpb_launder(&self->reader->scheduler);
    cpb_schedule_sender sender;
    CPB_INDIRECT(scheduler->table->schedule)(scheduler, &sender);
    self->hop_operation = CPB_INDIRECT(sender.connect)(&sender, t.hop_set_value, self);
    if (CPB_UNLIKELY(self->hop_operation == NULL)) {
        CPB_INDIRECT(scheduler->table->drop)(scheduler);
        self->code = 1; /* no memory */
        awaiter_complete(self, t);
        return;
    }
    CPB_INDIRECT(self->hop_operation->table->start)(self->hop_operation);
}

CPB_TEMPLATE void
hop_end(session *self)
{
    cpb_any_scheduler *scheduler = cpb_launder(&self->reader->scheduler);
    CPB_INDIRECT(self->hop_operation->table->destroy)(self->hop_operation);
    CPB_INDIRECT(scheduler->table->drop)(scheduler);
}

/* A read's own completion, wherever it comes from. */
CPB_TEMPLATE void
complete(session *self, const traits t)
{
    if (t.how == DIRECT)
        cpb_frame_drive(&self->base.frame);
    else if (t.how == BRIDGE)
        exchange_complete(self);
    else if (t.affine != NO_AFFINITY)
        hop(self, t);
    else
        awaiter_complete(self, t);
}

/* Starts a sender read. True: complete already. */
CPB_TEMPLATE bool
start_sender(session *self, const traits t)
{
    cpb_reader *reader = self->reader;
    store(self, 0);
    return cpb_sender_begin(t.family, t.kind, &self->read, self->stream, &reader->pool, t.execute, t.set_value, self);
}

/* Starts an awaitable as a sender: a fake frame, an environment with the adapter. True: complete already. */
CPB_TEMPLATE bool
start_awaitable_as_sender(session *self, const traits t)
{
    cpb_reader *reader = self->reader;
    self->posting =
        (cpb_env){cpb_adapter_executor(t.family, &reader->adapter), self->base.env->stop, self->base.env->allocator};
    self->fake.resume = t.fake_resume;
    struct iovec buffer = {self->buffer, sizeof self->buffer};
    return cpb_awaitable_begin(t.kind, self->stream, &self->awaitable, buffer, &self->fake, &self->posting) ==
           &self->fake;
}

CPB_TEMPLATE void
end_awaitable(session *self, const traits t)
{
    cpb_read_result result = cpb_awaitable_end(t.kind, self->stream);
    self->bytes = result.bytes;
    self->code = result.code;
}

/* AWAITER, starting end. */
CPB_TEMPLATE cpb_frame *
await_sender(session *self, const traits t)
{
    cpb_atomic_store_relaxed(&self->done, false);
    cpb_atomic_store_relaxed(&self->phase, STARTING);
    self->starter = pthread_self();
    if (t.affine == ERASED_SCHEDULER) {
        cpb_any_scheduler *scheduler = cpb_launder(&self->reader->scheduler);
        CPB_INDIRECT(scheduler->table->copy)(scheduler);
    }
    bool inline_completion;
    if (t.sender) {
        inline_completion = start_sender(self, t);
    } else {
        inline_completion = start_awaitable_as_sender(self, t);
        if (inline_completion)
            end_awaitable(self, t);
    }
    if (inline_completion)
        complete(self, t);
    bool completed = t.family == CPB_BEMAN ? cpb_atomic_exchange_acq_rel(&self->done, true)
                                           : cpb_atomic_exchange_acq_rel(&self->phase, LEFT) == COMPLETED;
    return completed ? &self->base.frame : NULL;
}

CPB_TEMPLATE cpb_frame *
begin_read(session *self, const traits t)
{
    cpb_reader *reader = self->reader;
    if (t.how == AWAITER)
        return await_sender(self, t);
    if (t.how == BRIDGE) {
        /* The receiver's environment: executor, and a copy of the stop token. */
        self->posting = *self->base.env;
        cpb_escape(&self->posting);
        cpb_atomic_store_relaxed(&self->done, false);
        if (start_sender(self, t))
            exchange_complete(self);
        return cpb_atomic_exchange_acq_rel(&self->done, true) ? &self->base.frame : NULL;
    }
    if (t.sender)
        return start_sender(self, t) ? &self->base.frame : NULL;
    struct iovec buffer = {self->buffer, sizeof self->buffer};
    const cpb_env *env = self->base.env;
    /* Beman's task awaits the wrapped awaitable directly, with an environment whose executor makes an op per post. */
    if (t.set_value != NULL) {
        self->posting = (cpb_env){cpb_adapter_executor(t.family, &reader->adapter), env->stop, env->allocator};
        env = &self->posting;
    }
    return cpb_awaitable_begin(t.kind, self->stream, &self->awaitable, buffer, &self->base.frame, env);
}

CPB_TEMPLATE void
end_read(session *self, const traits t)
{
    if (!t.sender && t.how == DIRECT) {
        /* The result is a temporary of the co_await expression. */
        cpb_read_result result = cpb_awaitable_end(t.kind, self->stream);
        cpb_reader_count(self->reader, result.code, result.bytes);
        return;
    }
    if (t.sender)
        cpb_sender_end(t.family, t.kind, &self->read);
    if (t.affine == ERASED_SCHEDULER && self->hop_operation != NULL)
        hop_end(self);
    self->hop_operation = NULL;
    cpb_reader_count(self->reader, self->code + (t.sender && self->read.failed), self->bytes);
}

/* A sender that is known to complete where it is started: the senders' own tasks do not suspend for it. Capy's bridge
 * does not ask. */
CPB_TEMPLATE bool
never_suspends(const traits t)
{
    return t.sender && t.kind == CPB_SYNC && t.how != BRIDGE;
}

CPB_TEMPLATE cpb_frame *
step(session *self, const traits t)
{
    for (;;) {
        cpb_env_restore_allocator(self->base.env);
        if (CPB_LIKELY(self->base.frame.state == 1)) {
            end_read(self, t);
            self->left--;
        }
        if (CPB_UNLIKELY(self->left == 0))
            return cpb_task_return(&self->base, 0);
        self->base.frame.state = 1;
        if (!never_suspends(t))
            return begin_read(self, t);
        store(self, 0);
        cpb_escape(self); /* each read's result is stored, tested and counted, or the loop would be folded into one */
    }
}

static void
destroy_session(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(session));
}

static cpb_task *
make_session(cpb_reader *reader, void *stream, cpb_frame *(*resume)(cpb_frame *))
{
    session *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume, destroy_session);
    self->reader = reader;
    self->stream = stream;
    self->left = CPB_SESSION_READS;
    self->hop_operation = NULL;
    self->read.failed = false;
    return &self->base;
}

/* One instance: its resume function, its completions, its ramp. */
#define INSTANCE(name, family_, kind_, sender_, how_, affine_)                                                         \
    static void name##_execute(cpb_work *work);                                                                        \
    static void name##_set_value(void *context, size_t bytes);                                                         \
    static cpb_frame *name##_fake(cpb_frame *frame);                                                                   \
    static void name##_hop(cpb_work *work);                                                                            \
    static void name##_hop_value(void *context, size_t bytes);                                                         \
    static const traits name##_traits = {family_,    kind_,           sender_,          how_,                          \
                                         affine_,    name##_execute,  name##_set_value, name##_fake,                   \
                                         name##_hop, name##_hop_value};                                                \
    static void name##_execute(cpb_work *work)                                                                         \
    {                                                                                                                  \
        session *self = CPB_CONTAINER_OF(work, session, read.work);                                                    \
        store(self, 0);                                                                                                \
        complete(self, name##_traits);                                                                                 \
    }                                                                                                                  \
    static void name##_set_value(void *context, size_t bytes)                                                          \
    {                                                                                                                  \
        session *self = context;                                                                                       \
        store(self, bytes);                                                                                            \
        complete(self, name##_traits);                                                                                 \
    }                                                                                                                  \
    static cpb_frame *name##_fake(cpb_frame *frame)                                                                    \
    {                                                                                                                  \
        session *self = CPB_CONTAINER_OF(frame, session, fake);                                                        \
        end_awaitable(self, name##_traits);                                                                            \
        if (CPB_UNLIKELY(self->posting.stop->stop_requested))                                                          \
            self->code = 1;                                                                                            \
        complete(self, name##_traits);                                                                                 \
        return NULL;                                                                                                   \
    }                                                                                                                  \
    static void name##_hop(cpb_work *work)                                                                             \
    {                                                                                                                  \
        awaiter_complete(CPB_CONTAINER_OF(work, session, hop), name##_traits);                                         \
    }                                                                                                                  \
    static void name##_hop_value(void *context, size_t bytes)                                                          \
    {                                                                                                                  \
        (void)bytes;                                                                                                   \
        awaiter_complete(context, name##_traits);                                                                      \
    }                                                                                                                  \
    CPB_NOINLINE static cpb_frame *name##_resume(cpb_frame *frame)                                                     \
    {                                                                                                                  \
        return step((session *)(void *)frame, name##_traits);                                                          \
    }                                                                                                                  \
    CPB_NOINLINE static cpb_task *name##_ramp(cpb_reader *reader)                                                      \
    {                                                                                                                  \
        void *stream = sender_ ? (void *)cpb_sender_stream_of(kind_, &reader->senders)                                 \
                               : cpb_awaitable_stream(kind_, &reader->awaitables);                                     \
        return make_session(reader, stream, name##_resume);                                                            \
    }

/* The four stream kinds of a consumer, and its table. */
#define CONSUMER(name, family, sender, how, affine)                                                                    \
    INSTANCE(name##_native, family, CPB_NATIVE, sender, how, affine)                                                   \
    INSTANCE(name##_abstract, family, CPB_ABSTRACT, sender, how, affine)                                               \
    INSTANCE(name##_erased, family, CPB_ERASED, sender, how, affine)                                                   \
    INSTANCE(name##_sync, family, CPB_SYNC, sender, how, affine)                                                       \
    const cpb_session_ramp cpb_##name[4] = {name##_native_ramp, name##_abstract_ramp, name##_erased_ramp,              \
                                            name##_sync_ramp};

CONSUMER(task_sender_stdexec, CPB_STDEXEC, true, BRIDGE, NO_AFFINITY)
CONSUMER(task_sender_beman, CPB_BEMAN, true, BRIDGE, NO_AFFINITY)
CONSUMER(plain_sender_stdexec, CPB_STDEXEC, true, AWAITER, NO_AFFINITY)
CONSUMER(plain_awaitable_stdexec, CPB_STDEXEC, false, AWAITER, NO_AFFINITY)
CONSUMER(affine_sender_stdexec, CPB_STDEXEC, true, AWAITER, ERASED_SCHEDULER)
CONSUMER(affine_awaitable_stdexec, CPB_STDEXEC, false, AWAITER, ERASED_SCHEDULER)
CONSUMER(shortcut_sender_beman, CPB_BEMAN, true, DIRECT, NO_AFFINITY)
CONSUMER(shortcut_awaitable_beman, CPB_BEMAN, false, DIRECT, NO_AFFINITY)
CONSUMER(plain_sender_beman, CPB_BEMAN, true, AWAITER, NO_AFFINITY)
CONSUMER(plain_awaitable_beman, CPB_BEMAN, false, AWAITER, NO_AFFINITY)
CONSUMER(named_sender_beman, CPB_BEMAN, true, AWAITER, NAMED)
CONSUMER(named_awaitable_beman, CPB_BEMAN, false, AWAITER, NAMED)
CONSUMER(affine_sender_beman, CPB_BEMAN, true, AWAITER, ERASED_SCHEDULER)
CONSUMER(affine_awaitable_beman, CPB_BEMAN, false, AWAITER, ERASED_SCHEDULER)

/* Capy's task on its own streams: no adapter, so no set_value in its traits. */
#define CAPY(kind_name, kind_)                                                                                         \
    CPB_NOINLINE static cpb_frame *capy_##kind_name##_resume(cpb_frame *frame)                                         \
    {                                                                                                                  \
        return step((session *)(void *)frame, (const traits){.kind = kind_, .how = DIRECT});                           \
    }                                                                                                                  \
    CPB_NOINLINE static cpb_task *capy_##kind_name##_ramp(cpb_reader *reader)                                          \
    {                                                                                                                  \
        return make_session(reader, cpb_awaitable_stream(kind_, &reader->awaitables), capy_##kind_name##_resume);      \
    }
CAPY(native, CPB_NATIVE)
CAPY(abstract, CPB_ABSTRACT)
CAPY(erased, CPB_ERASED)
CAPY(sync, CPB_SYNC)
const cpb_session_ramp cpb_task_awaitable[4] = {capy_native_ramp, capy_abstract_ramp, capy_erased_ramp, capy_sync_ramp};
