#include "base/pace.h"

#include "base/clock.h"
#include "base/compiler.h"

#define ROUNDS 1500000u

/* Four chains keep four units busy; the empty asm keeps the compiler from folding or vectorising them. */
CPB_NOINLINE static uint64_t
chains(uint64_t rounds)
{
    uint64_t a = 1, b = 2, c = 3, d = 4;
    for (uint64_t i = 0; i < rounds; i++) {
        a += i, b ^= i, c += i, d ^= i;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
        a ^= 7, b += 7, c ^= 5, d += 5;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
    return a ^ b ^ c ^ d;
}

uint64_t
cpb_pace_ns(void)
{
    uint64_t start = cpb_clock_ns();
    cpb_sink(chains(ROUNDS));
    return cpb_clock_ns() - start;
}
