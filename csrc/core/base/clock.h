/* clock.h: the one clock. Monotonic nanoseconds from an unspecified start; not slewed by steps of the wall clock, but
 * on a virtual machine it may still stand still or, with a broken clock source, step back: the harness counts both. */
#ifndef CPB_BASE_CLOCK_H
#define CPB_BASE_CLOCK_H

#include <stdint.h>

/* Now, in ns. Never fails on Linux. */
uint64_t cpb_clock_ns(void);

/* CPU time in ns of the calling thread and of the whole process. */
uint64_t cpb_clock_thread_cpu_ns(void);
uint64_t cpb_clock_process_cpu_ns(void);

/* The smallest step seen between two readings that differ, in ns, out of `tries` tries. */
uint64_t cpb_clock_step_ns(unsigned tries);

#endif
