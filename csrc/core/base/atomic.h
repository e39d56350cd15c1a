/* atomic.h: atomics whose name says the order. The order is part of the workload (specification 0.3, rule 7), so there
 * is no operation that silently means sequential consistency. Read-modify-writes and seq_cst stores are counted in the
 * ledger build. */
#ifndef CPB_BASE_ATOMIC_H
#define CPB_BASE_ATOMIC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/ledger.h"

#define cpb_atomic_load_relaxed(object) atomic_load_explicit(object, memory_order_relaxed)
#define cpb_atomic_load_acquire(object) atomic_load_explicit(object, memory_order_acquire)
#define cpb_atomic_load_seq_cst(object) atomic_load_explicit(object, memory_order_seq_cst)
#define cpb_atomic_store_relaxed(object, value) atomic_store_explicit(object, value, memory_order_relaxed)
#define cpb_atomic_store_release(object, value) atomic_store_explicit(object, value, memory_order_release)
#define cpb_atomic_store_seq_cst(object, value)                                                                        \
    (CPB_COUNT(CPB_SEQ_CST_STORES), atomic_store_explicit(object, value, memory_order_seq_cst))

#define cpb_atomic_exchange_acquire(object, value)                                                                     \
    (CPB_COUNT(CPB_ATOMIC_RMWS), atomic_exchange_explicit(object, value, memory_order_acquire))
#define cpb_atomic_exchange_acq_rel(object, value)                                                                     \
    (CPB_COUNT(CPB_ATOMIC_RMWS), atomic_exchange_explicit(object, value, memory_order_acq_rel))
#define cpb_atomic_exchange_seq_cst(object, value)                                                                     \
    (CPB_COUNT(CPB_ATOMIC_RMWS), atomic_exchange_explicit(object, value, memory_order_seq_cst))
#define cpb_atomic_add_relaxed(object, value)                                                                          \
    (CPB_COUNT(CPB_ATOMIC_RMWS), atomic_fetch_add_explicit(object, value, memory_order_relaxed))
#define cpb_atomic_add_acq_rel(object, value)                                                                          \
    (CPB_COUNT(CPB_ATOMIC_RMWS), atomic_fetch_add_explicit(object, value, memory_order_acq_rel))
#define cpb_atomic_sub_relaxed(object, value)                                                                          \
    (CPB_COUNT(CPB_ATOMIC_RMWS), atomic_fetch_sub_explicit(object, value, memory_order_relaxed))
#define cpb_atomic_sub_acq_rel(object, value)                                                                          \
    (CPB_COUNT(CPB_ATOMIC_RMWS), atomic_fetch_sub_explicit(object, value, memory_order_acq_rel))
/* Strong compare-exchange; on success `success` order, on failure relaxed. */
#define cpb_atomic_cas_release(object, expected, desired)                                                              \
    (CPB_COUNT(CPB_ATOMIC_RMWS),                                                                                       \
     atomic_compare_exchange_strong_explicit(object, expected, desired, memory_order_release, memory_order_relaxed))
#define cpb_atomic_cas_acq_rel(object, expected, desired)                                                              \
    (CPB_COUNT(CPB_ATOMIC_RMWS),                                                                                       \
     atomic_compare_exchange_strong_explicit(object, expected, desired, memory_order_acq_rel, memory_order_relaxed))

#endif
