#include "alloc/thread_cache.h"

CPB_NOINLINE void *
cpb_thread_cache_miss(cpb_thread_cache *cache, cpb_cache_purpose purpose, size_t size)
{
    for (unsigned i = 0; cache != NULL && i < CPB_CACHE_SLOTS; i++) {
        if (cache->blocks[purpose][i] != NULL) {
            cpb_heap_free(cache->blocks[purpose][i]);
            cache->blocks[purpose][i] = NULL;
            break;
        }
    }
    size_t chunks = (size + CPB_CACHE_CHUNK - 1) / CPB_CACHE_CHUNK;
    unsigned char *memory = cpb_heap_alloc(chunks * CPB_CACHE_CHUNK + 1);
    if (CPB_LIKELY(memory != NULL))
        memory[size] = chunks <= CPB_CACHE_MAX_CHUNKS ? (unsigned char)chunks : 0;
    return memory;
}

void
cpb_thread_cache_drain(cpb_thread_cache *cache)
{
    for (unsigned purpose = 0; purpose < CPB_CACHE_PURPOSES; purpose++) {
        for (unsigned i = 0; i < CPB_CACHE_SLOTS; i++) {
            cpb_heap_free(cache->blocks[purpose][i]);
            cache->blocks[purpose][i] = NULL;
        }
    }
}
