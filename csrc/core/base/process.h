/* process.h: what the process holds. */
#ifndef CPB_BASE_PROCESS_H
#define CPB_BASE_PROCESS_H

#include <stdint.h>

/* Bytes that the C library's allocator has handed out and not got back, in all its arenas, with its own overhead. */
uint64_t cpb_heap_in_use(void);

#endif
