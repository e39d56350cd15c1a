#include "suites/primitives_bodies.h"

#include "rt/frame.h"

#define FRAME_BYTES (96u - CPB_FRAME_TRAILER)

CPB_NOINLINE uint64_t
cpb_primitive_callee(uint64_t value)
{
    return value + 1;
}

CPB_NOINLINE void *
cpb_primitive_frame_alloc(void)
{
    return cpb_frame_alloc(FRAME_BYTES);
}

CPB_NOINLINE void
cpb_primitive_frame_free(void *frame)
{
    cpb_frame_free(frame, FRAME_BYTES);
}
