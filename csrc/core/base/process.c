#include "base/process.h"

#include <malloc.h>

uint64_t
cpb_heap_in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
#else
    struct mallinfo info = mallinfo(); /* its ints wrap beyond 2 GB: good enough for a difference */
#endif
    return (uint64_t)info.uordblks + (uint64_t)info.hblkhd;
}
