/* mutex.h: a real pthread mutex, counted in the ledger build. A pair is counted at its lock. */
#ifndef CPB_BASE_MUTEX_H
#define CPB_BASE_MUTEX_H

#include <pthread.h>

#include "base/ledger.h"

static inline void
cpb_mutex_lock(pthread_mutex_t *mutex)
{
    CPB_COUNT(CPB_MUTEX_PAIRS);
    pthread_mutex_lock(mutex);
}

static inline void
cpb_mutex_unlock(pthread_mutex_t *mutex)
{
    pthread_mutex_unlock(mutex);
}

#endif
