#include "rt/cancel.h"

static void
call_nothing(cpb_cancel_handler *self)
{
    (void)self;
}

static size_t
destroy_handler(cpb_cancel_handler *self)
{
    return sizeof *self;
}

const cpb_cancel_table cpb_cancel_frame_table = {call_nothing, destroy_handler};
