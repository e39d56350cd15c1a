#include "rt/executor.h"

CPB_NOINLINE void
cpb_executor_no_work(void *object)
{
    (void)object;
}
