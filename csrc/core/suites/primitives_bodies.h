/* primitives_bodies.h: callees of suite `primitives`, in another translation unit than the timed loops. */
#ifndef CPB_SUITES_PRIMITIVES_BODIES_H
#define CPB_SUITES_PRIMITIVES_BODIES_H

#include <stddef.h>
#include <stdint.h>

/* Answers its argument plus 1, in a register, so that the call is what costs; called directly or through a pointer. */
uint64_t cpb_primitive_callee(uint64_t value);

/* Takes and gives back a coroutine frame of 96 bytes, trailer included, as a ramp and a destroy function do. */
void *cpb_primitive_frame_alloc(void);
void cpb_primitive_frame_free(void *frame);

#endif
