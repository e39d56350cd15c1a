/* build_info.h: what this binary is: compiler, flags, C library and the identity of the loaded object. */
#ifndef CPB_BASE_BUILD_INFO_H
#define CPB_BASE_BUILD_INFO_H

#include <stddef.h>

typedef struct cpb_build_fact {
    const char *key;
    const char *value;
} cpb_build_fact;

/* Facts fixed at compile time; ends with a NULL key. Static. */
const cpb_build_fact *cpb_build_facts(void);

/* The linker's build id of the object that holds this code, in hex with a terminating 0; "" when it was linked without
 * one. */
void cpb_build_id(char *hex, size_t size);

/* The C library in use now, e.g. "glibc 2.36". */
void cpb_libc_version(char *text, size_t size);

#endif
