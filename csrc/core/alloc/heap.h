/* heap.h: the C library's allocator as measured code must reach it: through functions of another translation unit,
 * since both compilers remove a malloc and free that they see together (specification 0.3, rule 5). Stands for global
 * operator new and delete. Counted as heap_allocs and heap_bytes in the ledger build. */
#ifndef CPB_ALLOC_HEAP_H
#define CPB_ALLOC_HEAP_H

#include <stddef.h>

/* At least 16-byte aligned memory, or NULL. */
void *cpb_heap_alloc(size_t size);

/* The same with an alignment above 16; `alignment` is a power of two. */
void *cpb_heap_alloc_aligned(size_t size, size_t alignment);

/* Accepts NULL and memory of both functions above. */
void cpb_heap_free(void *memory);

#endif
