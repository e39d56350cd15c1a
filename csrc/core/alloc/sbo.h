/* sbo.h: Cobalt's small-buffer resource, rule for rule (specification D.6).
 *
 * A bump pointer in the caller's buffer; sizes are rounded to 16. A freed block that lies on top moves the top back.
 * Any other freed block only adds to the tally of available bytes and marks the buffer fragmented: from then on every
 * request goes upstream, until all bytes have come back, which resets it. A request that does not fit goes upstream,
 * too. There is no release. Requests passed on count as upstream_allocs. */
#ifndef CPB_ALLOC_SBO_H
#define CPB_ALLOC_SBO_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/resource.h"

typedef struct cpb_sbo {
    cpb_resource resource; /* first */
    unsigned char *begin;
    size_t available;
    size_t size;
    bool fragmented;
    cpb_resource *upstream;
} cpb_sbo;

extern const cpb_resource_table cpb_sbo_table;

/* The buffer is neither read nor cleared; its unaligned head is given up. */
static inline void
cpb_sbo_init(cpb_sbo *sbo, void *buffer, size_t size, cpb_resource *upstream)
{
    size_t head = (size_t)(-(uintptr_t)buffer % CPB_DEFAULT_ALIGN);
    sbo->resource.table = &cpb_sbo_table;
    sbo->begin = (unsigned char *)buffer + head;
    sbo->size = head < size ? size - head : 0;
    sbo->available = sbo->size;
    sbo->fragmented = false;
    sbo->upstream = upstream;
}

#endif
