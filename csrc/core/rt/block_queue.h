/* block_queue.h: a worker's own LIFO queue of a work-stealing pool: 32 blocks of 8 slots (specification C.3;
 * block-based work stealing after Wang et al. 2022).
 *
 * The owner pushes to and pops from its current block without any read-modify-write. A block that is full is *granted*:
 * thieves then take its items, oldest first, with a compare-exchange, until the owner comes back down to the block and
 * takes over what is left with one exchange. What lies in the owner's current block cannot be stolen, in the original
 * neither.
 *
 * A granted block's word holds a round, raised with every grant so that no thief mistakes a new grant for an old one,
 * and the next slot to steal; CPB_BLOCK_SLOTS there means that nothing can be stolen. */
#ifndef CPB_RT_BLOCK_QUEUE_H
#define CPB_RT_BLOCK_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/compiler.h"

#define CPB_BLOCK_SLOTS 8u
#define CPB_BLOCKS 32u

typedef struct cpb_work cpb_work;

typedef struct cpb_block {
    _Atomic(cpb_work *) slot[CPB_BLOCK_SLOTS];
    char apart[64];            /* thieves' writes off the owner's cache line */
    _Atomic(uint64_t) thieves; /* round << 32 | next slot to steal */
} cpb_block;

typedef struct cpb_block_queue {
    /* The owner's alone: in the current block, slots [bottom, top) hold items. */
    cpb_block *current;
    size_t top, bottom;
    /* Written by the owner only; thieves look at blocks [first, last). Both grow and fall without bound below 2^64; the
     * block is the value modulo CPB_BLOCKS. */
    char apart[64];
    _Atomic(uint64_t) first;
    _Atomic(uint64_t) last;
    cpb_block block[CPB_BLOCKS];
} cpb_block_queue;

void cpb_block_queue_init(cpb_block_queue *queue);

/* The owner's slow ends: the next block up, the block below. False when all blocks are in use; when nothing is left. */
bool cpb_block_queue_advance(cpb_block_queue *queue);
bool cpb_block_queue_retreat(cpb_block_queue *queue);

/* Owner: false when the queue is full. */
static inline bool
cpb_block_queue_push(cpb_block_queue *queue, cpb_work *item)
{
    if (CPB_UNLIKELY(queue->top == CPB_BLOCK_SLOTS) && !cpb_block_queue_advance(queue))
        return false;
    cpb_atomic_store_relaxed(&queue->current->slot[queue->top], item);
    queue->top++;
    return true;
}

/* Owner: the youngest item, or NULL. */
static inline cpb_work *
cpb_block_queue_pop(cpb_block_queue *queue)
{
    if (queue->top == queue->bottom && !cpb_block_queue_retreat(queue))
        return NULL;
    queue->top--;
    return cpb_atomic_load_relaxed(&queue->current->slot[queue->top]);
}

/* Anybody: the oldest item of a granted block, or NULL. */
cpb_work *cpb_block_queue_steal(cpb_block_queue *queue);

/* Anybody: whether a granted block has an item at this moment. */
bool cpb_block_queue_stealable(cpb_block_queue *queue);

#endif
