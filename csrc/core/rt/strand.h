/* strand.h: Capy's strand (specification A.4), which runs what is given to it one at a time, in order, on another
 * executor.
 *
 * A service per context owns the mutexes, which strands borrow by hash, and one cached invoker frame. */
#ifndef CPB_RT_STRAND_H
#define CPB_RT_STRAND_H

#include <pthread.h>
#include <stdatomic.h>

#include "rt/executor.h"

#define CPB_STRAND_MUTEXES 193u

typedef struct cpb_strand_service {
    pthread_mutex_t *mutexes[CPB_STRAND_MUTEXES]; /* made when first borrowed */
    _Atomic(void *) cached_invoker;
} cpb_strand_service;

/* What handles of one strand share. Reached through a pointer only. */
typedef struct cpb_strand_impl {
    int64_t references;
    pthread_mutex_t *mutex;
    cpb_continuation *head;
    cpb_continuation *tail;
    bool locked; /* an invoker exists or is being made */
    atomic_uintptr_t running_thread;
    _Atomic(cpb_strand_service *) service;
} cpb_strand_impl;

typedef struct cpb_strand {
    cpb_executor inner;
    cpb_strand_impl *impl;
} cpb_strand;

void cpb_strand_service_init(cpb_strand_service *service);

/* All strands of the service must be finished. */
void cpb_strand_service_fini(cpb_strand_service *service);

/* Makes a strand over `inner`. CPB_OK or CPB_E_NO_MEMORY. The service must outlive it; not thread-safe against other
 * makers. */
int cpb_strand_init(cpb_strand *strand, cpb_strand_service *service, cpb_executor inner);

/* Gives the handle's share back; the strand must be idle. */
void cpb_strand_fini(cpb_strand *strand);

/* A reference to the strand as an executor; valid while the handle is. Copies count in impl->references. */
cpb_executor cpb_strand_executor(cpb_strand *strand);

#endif
