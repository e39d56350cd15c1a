#include "base/histogram.h"

uint64_t
cpb_histogram_low(size_t index)
{
    if (index < CPB_HISTOGRAM_SUB)
        return index;
    size_t shift = index / CPB_HISTOGRAM_SUB - 1;
    return (uint64_t)(index % CPB_HISTOGRAM_SUB + CPB_HISTOGRAM_SUB) << shift;
}

uint64_t
cpb_histogram_high(size_t index)
{
    if (index + 1 >= CPB_HISTOGRAM_BUCKETS)
        return UINT64_MAX;
    return cpb_histogram_low(index + 1) - 1;
}

void
cpb_histogram_merge(cpb_histogram *into, const cpb_histogram *from)
{
    if (from->count == 0)
        return;
    for (size_t i = 0; i < CPB_HISTOGRAM_BUCKETS; i++)
        into->bucket[i] += from->bucket[i];
    if (into->count == 0 || from->min < into->min)
        into->min = from->min;
    if (from->max > into->max)
        into->max = from->max;
    into->count += from->count;
    into->sum += from->sum;
}
