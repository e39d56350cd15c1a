/* compiler.h: the few promises that measured code needs from the compiler, each with its reason. */
#ifndef CPB_BASE_COMPILER_H
#define CPB_BASE_COMPILER_H

#include <stddef.h>
#include <stdint.h>

/* A measured boundary: neither inlined nor cloned for constant arguments (gcc's noipa stops constprop and isra, which
 * noinline alone does not). Put the function in another translation unit than its callers all the same. */
#if defined(__clang__)
#    define CPB_NOINLINE __attribute__((noinline))
#else
#    define CPB_NOINLINE __attribute__((noipa))
#endif

#define CPB_LIKELY(x) __builtin_expect(!!(x), 1)
#define CPB_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Thread-locals of a loaded module go through __tls_get_addr by default, a call that the original programs, being
 * executables, never paid. The initial-exec model makes it one load; the module's whole TLS must fit glibc's spare
 * static block. */
#define CPB_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

#define CPB_CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* Hides from the optimiser what a pointer points to, so that calls through it stay indirect. */
static inline void *
cpb_launder(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer));
    return pointer;
}

/* Consumes a value, so that the work that made it cannot be removed. */
static inline void
cpb_sink(uint64_t value)
{
    __asm__ volatile("" : : "r"(value));
}

/* Consumes the memory a pointer reaches: an array that was filled counts as read. */
static inline void
cpb_escape(void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

#endif
