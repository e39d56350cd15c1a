#include "base/clock.h"

#include <time.h>

static uint64_t
read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t
cpb_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t
cpb_clock_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t
cpb_clock_process_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t
cpb_clock_step_ns(unsigned tries)
{
    uint64_t smallest = UINT64_MAX;
    for (unsigned i = 0; i < tries; i++) {
        uint64_t first = cpb_clock_ns();
        uint64_t second = first;
        /* A clock that stands still must not hang the caller. */
        for (unsigned spin = 0; spin < 1000000 && second == first; spin++)
            second = cpb_clock_ns();
        if (second > first && second - first < smallest)
            smallest = second - first;
    }
    return smallest == UINT64_MAX ? 0 : smallest;
}
