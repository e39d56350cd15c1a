/* co_group.h: Asio's parallel group of a send and a receive, waited for by one awaitable frame (specification D.3,
 * D.5).
 *
 * The group's state is shared by the handlers of its operations and by the waiting frame, and comes from the thread's
 * cache; atomics count completions. The last completion dispatches the waiting handler, which runs at once. Deferred:
 * the operations carry the group's handlers themselves (the page's `channel`). Spawned: each operation is an awaitable
 * of its own, run by a spawned entry with two work guards, whose end calls the group's handler (operator &&, the page's
 * `parallel`). */
#ifndef CPB_RT_CO_GROUP_H
#define CPB_RT_CO_GROUP_H

#include "rt/co_thread.h"

#define CPB_CO_BRANCHES 2u

typedef struct cpb_co_group cpb_co_group;

/* A frame that waits for groups. */
typedef struct cpb_co_joiner {
    cpb_co_frame base; /* first */
    cpb_channel *channel;
    uint64_t value;                          /* what the send carries */
    cpb_co_group *group;                     /* while it waits */
    cpb_co_frame *children[CPB_CO_BRANCHES]; /* spawned: the awaitables, until their entries own them */
    cpb_op_result results[CPB_CO_BRANCHES];
    unsigned order[CPB_CO_BRANCHES];
} cpb_co_joiner;

/* Given to cpb_co_after_suspend. */
void cpb_co_group_deferred(cpb_co_frame *joiner);
void cpb_co_group_spawned(cpb_co_frame *joiner);

/* After the frame was resumed: true when both branches have a value. */
bool cpb_co_group_take(cpb_co_joiner *joiner);

/* Ends a joiner that is destroyed while it waits. Before the scheduler and the channel are. */
void cpb_co_group_abandon(cpb_co_joiner *joiner);

#endif
