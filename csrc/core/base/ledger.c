#include "base/ledger.h"

#include <string.h>

#if CPB_LEDGER
uint64_t cpb_ledger_totals[CPB_COUNTER_COUNT];
#endif

void
cpb_ledger_read(uint64_t totals[CPB_COUNTER_COUNT])
{
#if CPB_LEDGER
    for (size_t i = 0; i < CPB_COUNTER_COUNT; i++)
        totals[i] = __atomic_load_n(&cpb_ledger_totals[i], __ATOMIC_RELAXED);
#else
    memset(totals, 0, sizeof(uint64_t) * CPB_COUNTER_COUNT);
#endif
}

int
cpb_ledger_counting(void)
{
    return CPB_LEDGER;
}

const char *
cpb_counter_key(cpb_counter counter)
{
    static const char *const keys[CPB_COUNTER_COUNT] = {
#define CPB_COUNTER_KEY(name, key) [name] = key,
        CPB_COUNTER_LIST(CPB_COUNTER_KEY)
#undef CPB_COUNTER_KEY
    };
    return keys[counter];
}
