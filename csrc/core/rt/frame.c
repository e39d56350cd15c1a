#include "rt/frame.h"

CPB_THREAD_LOCAL cpb_resource *cpb_frame_allocator;
