/* histogram.h: latencies in ns, HDR-type: exact below 128, then 128 buckets for each doubling, so that a bucket is less
 * than 1 % wide. Recording allocates nothing; histograms of equal shape add up bucket by bucket. Minimum, maximum and
 * sum are exact. */
#ifndef CPB_BASE_HISTOGRAM_H
#define CPB_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define CPB_HISTOGRAM_BITS 7u
#define CPB_HISTOGRAM_SUB (1u << CPB_HISTOGRAM_BITS)
#define CPB_HISTOGRAM_TOP 40u /* values from 2^40 ns, 18 minutes, share the last bucket */
#define CPB_HISTOGRAM_BUCKETS ((CPB_HISTOGRAM_TOP - CPB_HISTOGRAM_BITS + 1u) * CPB_HISTOGRAM_SUB)

typedef struct cpb_histogram {
    uint64_t count, sum, min, max;
    uint64_t bucket[CPB_HISTOGRAM_BUCKETS];
} cpb_histogram;

/* The bucket of a value. */
static inline size_t
cpb_histogram_index(uint64_t value)
{
    if (value < CPB_HISTOGRAM_SUB)
        return (size_t)value;
    unsigned exponent = 63u - (unsigned)__builtin_clzll(value);
    if (exponent >= CPB_HISTOGRAM_TOP)
        return CPB_HISTOGRAM_BUCKETS - 1;
    unsigned shift = exponent - CPB_HISTOGRAM_BITS;
    return (size_t)(shift + 1) * CPB_HISTOGRAM_SUB + (size_t)((value >> shift) - CPB_HISTOGRAM_SUB);
}

static inline void
cpb_histogram_record(cpb_histogram *self, uint64_t value)
{
    self->bucket[cpb_histogram_index(value)]++;
    if (value < self->min || self->count == 0)
        self->min = value;
    if (value > self->max)
        self->max = value;
    self->count++;
    self->sum += value;
}

/* The least and the greatest value of a bucket. */
uint64_t cpb_histogram_low(size_t index);
uint64_t cpb_histogram_high(size_t index);

void cpb_histogram_merge(cpb_histogram *into, const cpb_histogram *from);

#endif
