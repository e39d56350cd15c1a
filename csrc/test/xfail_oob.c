/* Writes one byte beyond a block: must be stopped by the address sanitizer. */
#include "alloc/heap.h"
#include "base/compiler.h"

int
main(void)
{
    volatile char *block = cpb_heap_alloc(16);
    block[cpb_launder(NULL) == NULL ? 16 : 0] = 1;
    cpb_heap_free((void *)block);
    return 0;
}
