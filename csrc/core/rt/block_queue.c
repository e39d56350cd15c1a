#include "rt/block_queue.h"

static cpb_block *
block_at(cpb_block_queue *queue, uint64_t number)
{
    return &queue->block[number % CPB_BLOCKS];
}

static uint64_t
round_of(uint64_t word)
{
    return word >> 32;
}

static uint64_t
next_slot(uint64_t word)
{
    return word & UINT32_MAX;
}

void
cpb_block_queue_init(cpb_block_queue *queue)
{
    for (size_t i = 0; i < CPB_BLOCKS; i++)
        atomic_init(&queue->block[i].thieves, CPB_BLOCK_SLOTS);
    /* Far from 0, so that retreating below the first block never wraps. */
    atomic_init(&queue->first, (uint64_t)1 << 32);
    atomic_init(&queue->last, (uint64_t)1 << 32);
    queue->current = block_at(queue, (uint64_t)1 << 32);
    queue->top = queue->bottom = 0;
}

/* Grants the current block and goes on to the next one. Only blocks below it that are empty make room. */
CPB_NOINLINE bool
cpb_block_queue_advance(cpb_block_queue *queue)
{
    uint64_t last = cpb_atomic_load_relaxed(&queue->last);
    uint64_t first = cpb_atomic_load_relaxed(&queue->first);
    while (first < last && next_slot(cpb_atomic_load_acquire(&block_at(queue, first)->thieves)) == CPB_BLOCK_SLOTS)
        first++;
    cpb_atomic_store_relaxed(&queue->first, first);
    if (last + 1 - first >= CPB_BLOCKS)
        return false;
    cpb_block *full = queue->current;
    uint64_t round = round_of(cpb_atomic_load_relaxed(&full->thieves)) + 1;
    /* Released: a thief that sees the grant sees the items. */
    cpb_atomic_store_release(&full->thieves, round << 32 | queue->bottom);
    queue->current = block_at(queue, last + 1);
    queue->top = queue->bottom = 0;
    /* Sequentially consistent: who pushed looks at the sleepers next, and a sleeper looks here after it said so. */
    cpb_atomic_store_seq_cst(&queue->last, last + 1);
    return true;
}

/* Takes over the nearest block below that thieves have not emptied. */
CPB_NOINLINE bool
cpb_block_queue_retreat(cpb_block_queue *queue)
{
    uint64_t last = cpb_atomic_load_relaxed(&queue->last);
    uint64_t first = cpb_atomic_load_relaxed(&queue->first);
    /* Empty: begin the block anew, or a block that was taken over half stolen would stay short. */
    queue->top = queue->bottom = 0;
    while (last > first) {
        last--;
        cpb_block *below = block_at(queue, last);
        uint64_t round = round_of(cpb_atomic_load_relaxed(&below->thieves));
        uint64_t word = cpb_atomic_exchange_acq_rel(&below->thieves, round << 32 | CPB_BLOCK_SLOTS);
        queue->current = below;
        cpb_atomic_store_relaxed(&queue->last, last);
        if (next_slot(word) < CPB_BLOCK_SLOTS) {
            queue->bottom = next_slot(word);
            queue->top = CPB_BLOCK_SLOTS;
            return true;
        }
    }
    return false;
}

CPB_NOINLINE cpb_work *
cpb_block_queue_steal(cpb_block_queue *queue)
{
    uint64_t last = cpb_atomic_load_acquire(&queue->last);
    for (uint64_t number = cpb_atomic_load_relaxed(&queue->first); number < last; number++) {
        cpb_block *block = block_at(queue, number);
        uint64_t word = cpb_atomic_load_acquire(&block->thieves);
        while (next_slot(word) < CPB_BLOCK_SLOTS) {
            /* Read before it is won: once the word has moved, the owner may fill the slot anew. */
            cpb_work *item = cpb_atomic_load_relaxed(&block->slot[next_slot(word)]);
            CPB_COUNT(CPB_ATOMIC_RMWS);
            if (atomic_compare_exchange_weak_explicit(&block->thieves, &word, word + 1, memory_order_acq_rel,
                                                      memory_order_acquire))
                return item;
        }
    }
    return NULL;
}

bool
cpb_block_queue_stealable(cpb_block_queue *queue)
{
    uint64_t last = cpb_atomic_load_seq_cst(&queue->last);
    for (uint64_t number = cpb_atomic_load_seq_cst(&queue->first); number < last; number++) {
        if (next_slot(cpb_atomic_load_seq_cst(&block_at(queue, number)->thieves)) < CPB_BLOCK_SLOTS)
            return true;
    }
    return false;
}
