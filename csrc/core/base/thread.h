/* thread.h: whether the process ever made a thread, and a parked thread for cases that need one to exist. */
#ifndef CPB_BASE_THREAD_H
#define CPB_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ledger.h"

#include <sys/single_threaded.h>

/* glibc's own flag: true until the first pthread_create of the process, then false for good. */
static inline bool
cpb_thread_single(void)
{
    return __libc_single_threaded != 0;
}

/* Changes a reference count the way libstdc++ does: plainly while the process is single-threaded, atomically
 * afterwards. Counted as a ref change, never as an RMW (specification 0.3, rule 8). Returns the value before. */
static inline int64_t
cpb_ref_add(int64_t *count, int64_t delta)
{
    CPB_COUNT(CPB_REF_CHANGES);
    if (cpb_thread_single()) {
        int64_t before = *count;
        *count = before + delta;
        return before;
    }
    return __atomic_fetch_add(count, delta, __ATOMIC_ACQ_REL);
}

/* A thread that sleeps until it is told to end. */
typedef struct cpb_parked_thread {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool end;
} cpb_parked_thread;

/* Starts the thread; returns once it exists. CPB_OK or CPB_E_SYSTEM. */
int cpb_parked_thread_start(cpb_parked_thread *parked);

/* Ends and joins it. */
void cpb_parked_thread_stop(cpb_parked_thread *parked);

#endif
