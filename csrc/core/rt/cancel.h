/* cancel.h: Asio's cancellation signal and slot. None of the workloads cancels; they connect and disconnect all the
 * same, and that is what is kept: a handler made in the slot, its memory from the thread's cache, destroyed through its
 * table. */
#ifndef CPB_RT_CANCEL_H
#define CPB_RT_CANCEL_H

#include "rt/scheduler.h"

typedef struct cpb_cancel_handler cpb_cancel_handler;

/* Ends the handler and answers its size, so that the slot can free or reuse the memory. */
typedef struct cpb_cancel_table {
    void (*call)(cpb_cancel_handler *self);
    size_t (*destroy)(cpb_cancel_handler *self);
} cpb_cancel_table;

struct cpb_cancel_handler {
    const cpb_cancel_table *table;
    void *target;
    void *detail;
};

typedef struct cpb_cancel_signal {
    cpb_cancel_handler *handler;
} cpb_cancel_signal;

/* Where a handler is connected; not connected to any signal while NULL. */
typedef struct cpb_cancel_slot {
    cpb_cancel_handler **handler;
} cpb_cancel_slot;

static inline cpb_cancel_slot
cpb_cancel_slot_of(cpb_cancel_signal *signal)
{
    return (cpb_cancel_slot){&signal->handler};
}

extern const cpb_cancel_table cpb_cancel_frame_table;

/* Destroys the slot's handler, if any. */
static inline void
cpb_cancel_clear(cpb_cancel_slot slot)
{
    if (slot.handler == NULL || *slot.handler == NULL)
        return;
    cpb_cancel_handler *handler = *slot.handler;
    size_t size = CPB_INDIRECT(handler->table->destroy)(handler);
    cpb_thread_cache_deallocate(cpb_thread_cache_here(), CPB_CACHE_CANCEL, handler, size);
    *slot.handler = NULL;
}

/* Makes a handler in a connected slot, in place of the one before. False when there is no memory. */
static inline bool
cpb_cancel_emplace(cpb_cancel_slot slot, void *target, void *detail)
{
    cpb_cancel_clear(slot);
    cpb_cancel_handler *handler = cpb_thread_cache_allocate(cpb_thread_cache_here(), CPB_CACHE_CANCEL, sizeof *handler);
    if (CPB_UNLIKELY(handler == NULL))
        return false;
    *handler = (cpb_cancel_handler){&cpb_cancel_frame_table, target, detail};
    *slot.handler = handler;
    return true;
}

#endif
