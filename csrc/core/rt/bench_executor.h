/* bench_executor.h: the executor of Capy's coroutine benchmark (specification A.2). Its context queues nothing:
 * dispatch hands the frame back, post resumes it inside the call. */
#ifndef CPB_RT_BENCH_EXECUTOR_H
#define CPB_RT_BENCH_EXECUTOR_H

#include "rt/executor.h"

typedef struct cpb_bench_context {
    cpb_resource *allocator; /* of frames launched here */
} cpb_bench_context;

/* A reference to the context's executor; valid while the context is. */
cpb_executor cpb_bench_executor(cpb_bench_context *context);

#endif
