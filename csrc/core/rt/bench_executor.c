#include "rt/bench_executor.h"

static cpb_frame *
bench_dispatch(void *object, cpb_continuation *continuation)
{
    (void)object;
    return continuation->frame;
}

static void
bench_post(void *object, cpb_continuation *continuation)
{
    (void)object;
    cpb_frame_drive(continuation->frame);
}

static const cpb_executor_table bench_table = {
    .dispatch = bench_dispatch,
    .post = bench_post,
};

cpb_executor
cpb_bench_executor(cpb_bench_context *context)
{
    return (cpb_executor){&bench_table, cpb_launder(context)};
}
