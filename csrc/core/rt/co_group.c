#include "rt/co_group.h"

#include <stdatomic.h>

#include "base/atomic.h"
#include "base/thread.h"

typedef struct branch_entry branch_entry;

struct cpb_co_group {
    int64_t references;
    _Atomic(unsigned) completed;
    _Atomic(unsigned) outstanding;
    cpb_co_thread handler; /* of the waiting frame */
    cpb_co_joiner *joiner;
    cpb_any_executor executor;
    cpb_op_result results[CPB_CO_BRANCHES];
    unsigned order[CPB_CO_BRANCHES];
    cpb_cancel_signal signals[CPB_CO_BRANCHES];
    branch_entry *entries[CPB_CO_BRANCHES]; /* not ended yet */
};

static inline void
acquire(cpb_co_group *group)
{
    cpb_ref_add(&group->references, 1);
}

static inline void
release(cpb_co_group *group)
{
    if (cpb_ref_add(&group->references, -1) != 1)
        return;
    cpb_cancel_clear(cpb_cancel_slot_of(&group->signals[0]));
    cpb_cancel_clear(cpb_cancel_slot_of(&group->signals[1]));
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_GROUP, group, sizeof *group);
}

/* The handler of one operation. It gives its reference up when the waiting frame has run. */
CPB_NOINLINE static void
complete_branch(cpb_co_group *group, unsigned branch, cpb_payload payload)
{
    group->entries[branch] = NULL;
    group->order[cpb_atomic_add_acq_rel(&group->completed, 1)] = branch;
    group->results[branch] = (cpb_op_result){true, payload};
    if (cpb_atomic_sub_acq_rel(&group->outstanding, 1) == 1) {
        cpb_co_thread thread = group->handler;
        cpb_co_joiner *joiner = group->joiner;
        for (unsigned i = 0; i < CPB_CO_BRANCHES; i++) {
            joiner->results[i] = group->results[i];
            joiner->order[i] = group->order[i];
        }
        if (CPB_LIKELY(cpb_any_running_here(&group->executor))) {
            thread.bottom->top->thread = &thread;
            cpb_co_pump(&thread);
        }
    }
    release(group);
}

/* Takes the thread out of the waiting frame, into a new group that the frame refers to. */
static inline cpb_co_group *
make_group(cpb_co_frame *frame)
{
    cpb_co_joiner *joiner = (cpb_co_joiner *)(void *)frame;
    cpb_co_thread thread = cpb_co_detach(frame);
    cpb_co_group *group = cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_GROUP, sizeof *group);
    joiner->group = group;
    if (CPB_UNLIKELY(group == NULL)) {
        cpb_any_fail(&thread.bottom->executor, CPB_E_NO_MEMORY);
        return NULL;
    }
    group->references = 1;
    atomic_init(&group->completed, 0);
    atomic_init(&group->outstanding, CPB_CO_BRANCHES);
    group->handler = thread;
    group->joiner = joiner;
    group->executor = thread.bottom->executor;
    for (unsigned i = 0; i < CPB_CO_BRANCHES; i++) {
        group->results[i].engaged = false;
        group->signals[i].handler = NULL;
        group->entries[i] = NULL;
    }
    return group;
}

bool
cpb_co_group_take(cpb_co_joiner *joiner)
{
    release(joiner->group);
    joiner->group = NULL;
    return joiner->results[0].engaged && joiner->results[1].engaged && joiner->results[0].value.error == 0 &&
           joiner->results[1].value.error == 0;
}

/* Deferred: operations that carry the group's handlers. */

typedef struct group_handler {
    cpb_co_group *group; /* counted */
    unsigned branch;
    cpb_cancel_slot slot;
} group_handler;

typedef struct posted_group {
    cpb_operation operation;
    group_handler handler;
    cpb_payload payload;
} posted_group;

static void
complete_posted_group(void *owner, cpb_operation *operation)
{
    posted_group *self = (posted_group *)(void *)operation;
    group_handler handler = self->handler;
    cpb_payload payload = self->payload;
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, self, sizeof *self);
    if (CPB_LIKELY(owner != NULL))
        complete_branch(handler.group, handler.branch, payload);
    else
        release(handler.group);
}

typedef struct group_op {
    cpb_channel_op base;
    cpb_any_executor work;
    group_handler handler;
} group_op;

static void
act_on_group(cpb_channel_op *base, cpb_channel_action action, cpb_payload payload)
{
    group_op *self = (group_op *)(void *)base;
    cpb_any_executor work = self->work;
    group_handler handler = self->handler;
    cpb_thread_cache *cache = cpb_thread_cache_here();
    cpb_thread_cache_deallocate(cache, CPB_CACHE_OPERATION, self, sizeof *self);
    posted_group *posted = NULL;
    if (CPB_LIKELY(action != CPB_CHANNEL_DESTROY)) {
        posted = cpb_thread_cache_allocate(cache, CPB_CACHE_OPERATION, sizeof *posted);
        if (CPB_UNLIKELY(posted == NULL))
            cpb_any_fail(&work, CPB_E_NO_MEMORY);
    }
    if (CPB_LIKELY(posted != NULL)) {
        posted->operation.complete = complete_posted_group;
        posted->handler = handler;
        posted->payload = payload;
        cpb_any_post(&work, &posted->operation);
    } else {
        release(handler.group);
    }
    cpb_any_work_finished(&work);
}

static inline group_op *
make_group_op(cpb_co_group *group, unsigned branch, uint64_t value)
{
    cpb_cancel_slot slot = cpb_cancel_slot_of(&group->signals[branch]);
    group_op *self = cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, sizeof *self);
    if (CPB_UNLIKELY(self == NULL) || CPB_UNLIKELY(!cpb_cancel_emplace(slot, self, NULL))) {
        if (self != NULL)
            cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_OPERATION, self, sizeof *self);
        cpb_any_fail(&group->executor, CPB_E_NO_MEMORY);
        return NULL;
    }
    self->base.act = act_on_group;
    self->base.payload = (cpb_payload){0, NULL, value};
    self->work = group->executor;
    self->handler = (group_handler){group, branch, slot};
    acquire(group);
    cpb_any_work_started(&self->work);
    return self;
}

CPB_NOINLINE void
cpb_co_group_deferred(cpb_co_frame *frame)
{
    cpb_co_joiner *joiner = (cpb_co_joiner *)(void *)frame;
    cpb_channel *channel = joiner->channel;
    cpb_co_group *group = make_group(frame);
    if (CPB_UNLIKELY(group == NULL))
        return;
    group_op *send = make_group_op(group, 0, joiner->value);
    if (CPB_UNLIKELY(send == NULL))
        return;
    cpb_channel_send(channel, &send->base);
    group_op *receive = make_group_op(group, 1, 0);
    if (CPB_LIKELY(receive != NULL))
        cpb_channel_receive(channel, &receive->base);
}

/* Spawned: an entry around each awaitable. */

struct branch_entry {
    cpb_co_entry base; /* first */
    cpb_any_executor spawn_work, handler_work;
    cpb_co_group *group; /* counted, until its handler was called */
    unsigned branch;
    cpb_cancel_signal signal;
    cpb_co_frame *dispatched;
    cpb_co_frame *child;
};

static void
destroy_entry(cpb_frame *frame)
{
    branch_entry *self = (branch_entry *)(void *)frame;
    cpb_cancel_clear(cpb_cancel_slot_of(&self->signal));
    cpb_co_free(self, sizeof *self);
}

CPB_NOINLINE static cpb_frame *
resume_entry(cpb_frame *frame)
{
    branch_entry *self = (branch_entry *)(void *)frame;
    cpb_payload payload;
    switch (frame->state) {
    case 0:
        self->dispatched = cpb_co_dispatch();
        if (CPB_UNLIKELY(self->dispatched == NULL)) {
            /* Stands still: taken out, so that the pump ends; the joiner's end destroys it. */
            cpb_any_fail(&self->spawn_work, CPB_E_NO_MEMORY);
            cpb_co_detach(&self->base.base);
            return NULL;
        }
        frame->state = 1;
        cpb_co_push(self->dispatched, &self->base.base);
        return NULL;
    case 1:
        cpb_co_take_void(self->dispatched);
        self->dispatched = NULL;
        self->base.context_switched = false;
        frame->state = 2;
        cpb_co_push(self->child, &self->base.base);
        return NULL;
    default:
        break;
    }
    bool ok = cpb_co_take(self->child, &payload);
    self->child = NULL;
    if (!ok)
        payload.error = CPB_E_FAILED;
    cpb_co_group *group = self->group;
    cpb_any_executor handler_work = self->handler_work;
    cpb_any_work_finished(&self->spawn_work);
    if (CPB_LIKELY(self->base.context_switched && cpb_any_running_here(&handler_work)))
        complete_branch(group, self->branch, payload);
    cpb_any_work_finished(&handler_work);
    cpb_co_pop(&self->base.base);
    return NULL;
}

/* Starts the entry of one branch, which then owns the awaitable. */
static inline bool
spawn(cpb_co_group *group, cpb_co_joiner *joiner, unsigned branch)
{
    branch_entry *self = cpb_co_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL) ||
        CPB_UNLIKELY(!cpb_cancel_emplace(cpb_cancel_slot_of(&group->signals[branch]), self, NULL))) {
        if (self != NULL)
            cpb_co_free(self, sizeof *self);
        cpb_any_fail(&group->executor, CPB_E_NO_MEMORY);
        return false;
    }
    cpb_co_entry_init(&self->base, resume_entry, destroy_entry, &group->executor);
    self->signal.handler = NULL;
    self->base.slot = cpb_cancel_slot_of(&self->signal);
    self->spawn_work = group->executor;
    self->handler_work = group->executor;
    self->group = group;
    self->branch = branch;
    self->dispatched = NULL;
    self->child = joiner->children[branch];
    joiner->children[branch] = NULL;
    group->entries[branch] = self;
    acquire(group);
    cpb_any_work_started(&self->spawn_work);
    cpb_any_work_started(&self->handler_work);
    cpb_co_launch(&self->base);
    return true;
}

CPB_NOINLINE void
cpb_co_group_spawned(cpb_co_frame *frame)
{
    cpb_co_joiner *joiner = (cpb_co_joiner *)(void *)frame;
    cpb_co_group *group = make_group(frame);
    if (CPB_LIKELY(group != NULL) && CPB_LIKELY(spawn(group, joiner, 0)))
        (void)spawn(group, joiner, 1);
}

/* An entry is suspended in its child, in its dispatch, or before either began. */
static void
abandon_entry(branch_entry *entry)
{
    cpb_co_frame *child = entry->child;
    bool child_is_stacked = entry->base.base.frame.state == 2;
    cpb_co_group *group = entry->group;
    cpb_co_destroy(&entry->base);
    if (child != NULL && !child_is_stacked)
        child->frame.destroy(&child->frame);
    release(group);
}

void
cpb_co_group_abandon(cpb_co_joiner *joiner)
{
    for (unsigned i = 0; i < CPB_CO_BRANCHES; i++) {
        if (joiner->children[i] != NULL)
            joiner->children[i]->frame.destroy(&joiner->children[i]->frame);
        joiner->children[i] = NULL;
        if (joiner->group != NULL && joiner->group->entries[i] != NULL)
            abandon_entry(joiner->group->entries[i]);
    }
    if (joiner->group != NULL)
        release(joiner->group);
    joiner->group = NULL;
}
