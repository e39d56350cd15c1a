/* uring.h: io_uring through the kernel's own interface: set-up, one submission queue, one completion queue. No lock:
 * the caller sees to it that one thread at a time fills entries, and one reaps. */
#ifndef CPB_RT_URING_H
#define CPB_RT_URING_H

#include <linux/io_uring.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cpb_uring {
    int fd;
    uint32_t features, flags;
    uint32_t *sq_head, *sq_tail, *sq_array, *cq_head, *cq_tail;
    uint32_t sq_mask, cq_mask, sq_entries;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
    uint32_t unsubmitted;
    void *rings;
    size_t rings_size, entries_size;
} cpb_uring;

/* NULL, or a static sentence why io_uring cannot be used here. */
const char *cpb_uring_unavailable(void);

/* CPB_OK, or CPB_E_SYSTEM with errno set. `single` asks for the single-issuer and deferred-task flags where the kernel
 * has them; `cooperative` for completions that interrupt nobody. */
int cpb_uring_init(cpb_uring *ring, unsigned entries, bool single, bool cooperative);
void cpb_uring_fini(cpb_uring *ring);

/* An entry to fill, zeroed; submits first when the queue is full. NULL when even that makes no room. */
struct io_uring_sqe *cpb_uring_entry(cpb_uring *ring);

/* Submits `submit` filled entries, which the caller has taken from `unsubmitted`, and waits for `wanted` completions up
 * to `timeout_ns` (negative: for ever). The number submitted, or -errno. */
int cpb_uring_enter(cpb_uring *ring, unsigned submit, unsigned wanted, int64_t timeout_ns);

/* The next completion, or NULL; then cpb_uring_seen for it. */
struct io_uring_cqe *cpb_uring_peek(cpb_uring *ring);
void cpb_uring_seen(cpb_uring *ring);

#endif
