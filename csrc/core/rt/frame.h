/* frame.h: the ABI of a coroutine frame, the continuation, the driver loop and frame allocation.
 *
 * A coroutine is a struct that begins with cpb_frame. Its resume function is out of line and switches on `state`; it
 * answers the next frame to run (symmetric transfer) or NULL, the "noop" that ends the driver loop. A driver loop costs
 * a return and an indirect call for each transfer where C++ pays one indirect jump; all contenders of a table pay it
 * alike (specification 0.3, rule 2).
 *
 * A frame's memory comes from the thread's current frame allocator. After the frame stands a trailer of 8 bytes,
 * unaligned as in the original, that names the allocator for the way back. Bodies re-store the current allocator from
 * their environment on entry and after every await. */
#ifndef CPB_RT_FRAME_H
#define CPB_RT_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "alloc/recycling.h"
#include "alloc/resource.h"
#include "base/compiler.h"
#include "base/ledger.h"

typedef struct cpb_frame cpb_frame;
struct cpb_frame {
    cpb_frame *(*resume)(cpb_frame *self); /* runs until the next suspension; answers who runs next, or NULL */
    void (*destroy)(cpb_frame *self);      /* ends a suspended frame and gives its memory back */
    uint64_t state;                        /* where to continue */
};

/* A frame to be resumed later. The link is free for whoever queues it, so queueing never allocates. */
typedef struct cpb_continuation cpb_continuation;
struct cpb_continuation {
    cpb_frame *frame;
    cpb_continuation *next;
};

/* The thread's current frame allocator. One of the two mutable thread-locals that the workload itself has. */
extern CPB_THREAD_LOCAL cpb_resource *cpb_frame_allocator;

/* Runs frames until one answers NULL. Accepts NULL. */
static inline void
cpb_frame_drive(cpb_frame *frame)
{
    while (frame != NULL)
        frame = CPB_INDIRECT(frame->resume)(frame);
}

#define CPB_FRAME_TRAILER sizeof(cpb_resource *)

static inline void
cpb_frame_store_trailer(void *memory, size_t size, cpb_resource *owner)
{
    memcpy((char *)memory + size, &owner, sizeof owner);
}

static inline cpb_resource *
cpb_frame_load_trailer(const void *memory, size_t size)
{
    cpb_resource *owner;
    memcpy(&owner, (const char *)memory + size, sizeof owner);
    return owner;
}

/* Memory for a frame of `size` bytes (a constant of the coroutine's type) from the current allocator: without the table
 * when that is the recycling resource, through it otherwise. NULL when there is none. */
static inline void *
cpb_frame_alloc(size_t size)
{
    cpb_resource *owner = cpb_frame_allocator;
    void *memory;
    if (CPB_LIKELY(owner == cpb_recycling_resource())) {
        CPB_COUNT(CPB_RESOURCE_ALLOCS);
        memory = cpb_recycling_allocate(size + CPB_FRAME_TRAILER);
    } else {
        memory = cpb_resource_allocate(owner, size + CPB_FRAME_TRAILER, CPB_DEFAULT_ALIGN);
    }
    if (CPB_LIKELY(memory != NULL))
        cpb_frame_store_trailer(memory, size, owner);
    return memory;
}

/* Gives a frame of `size` bytes back to the allocator that its trailer names. */
static inline void
cpb_frame_free(void *memory, size_t size)
{
    cpb_resource *owner = cpb_frame_load_trailer(memory, size);
    if (CPB_LIKELY(owner == cpb_recycling_resource())) {
        CPB_COUNT(CPB_RESOURCE_FREES);
        cpb_recycling_deallocate(memory, size + CPB_FRAME_TRAILER);
    } else {
        cpb_resource_deallocate(owner, memory, size + CPB_FRAME_TRAILER, CPB_DEFAULT_ALIGN);
    }
}

#endif
