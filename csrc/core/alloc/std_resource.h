/* std_resource.h: the adapter that turns a std::allocator into a memory resource: table, adapter, rebound allocator,
 * operator new, malloc (specification B.2, "std"). */
#ifndef CPB_ALLOC_STD_RESOURCE_H
#define CPB_ALLOC_STD_RESOURCE_H

#include "alloc/resource.h"

/* The one instance; it has no state. */
cpb_resource *cpb_std_resource(void);

#endif
