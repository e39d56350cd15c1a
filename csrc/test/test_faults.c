/* Memory runs out at the n-th request, for every n until a cell gets through: each time there is an error or a failed
 * verify, and everything taken is given back. Linked with --wrap for malloc, calloc and free. */
#include "check.h"
#include "registry.h"
#include "run.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *memory);

/* Atomic: pool threads ask for memory, too. */
static _Atomic(long) until_failure = -1; /* negative: never */
static _Atomic(long) balance;

static int
fails_now(void)
{
    return until_failure >= 0 && until_failure-- == 0;
}

void *
__wrap_malloc(size_t size)
{
    void *memory = fails_now() ? NULL : __real_malloc(size);
    balance += memory != NULL;
    return memory;
}

void *
__wrap_calloc(size_t count, size_t size)
{
    void *memory = fails_now() ? NULL : __real_calloc(count, size);
    balance += memory != NULL;
    return memory;
}

void
__wrap_free(void *memory)
{
    balance -= memory != NULL;
    __real_free(memory);
}

/* Answers whether the cell got through. */
static int
run_with_failure(const char *id, long nth)
{
    cpb_error error = {0};
    cpb_session *session = NULL;
    cpb_sample sample;
    const cpb_case *cell = cpb_registry_find(id);
    uint64_t step = cell->step > 0 ? cell->step : 1;
    balance = 0;
    until_failure = nth;
    int status = cpb_session_create(&session, cell, &error);
    if (status == CPB_OK)
        status = cpb_session_sample(session, 3 * step, &sample, &error);
    int failure_spent = until_failure < 0;
    until_failure = -1;
    if (status == CPB_OK)
        status = cpb_session_verify(session, &error);
    cpb_session_destroy(session);
    if (balance != 0) {
        fprintf(stderr, "%s, request %ld: %ld blocks are left\n", id, nth, balance);
        check_failures++;
    }
    CHECK(status == CPB_OK || error.message[0] != '\0');
    CHECK(status != CPB_OK || !failure_spent);
    return status == CPB_OK;
}

int
main(void)
{
    static const char *const ids[] = {
        "channel/post@task",
        "channel/post@awaitable",
        "channel/parallel@task",
        "channel/parallel@awaitable",
        "channel/immediate@task",
        "channel/immediate@awaitable",
        "channel/channel@task",
        "channel/channel@awaitable",
        "channel/pingpong@task",
        "channel/pingpong@awaitable",
        "coroutine/run_async/depth1@task",
        "coroutine/run_async/depth4@task",
        "coroutine/strand/depth4@task",
        "coroutine/switch/executor@task",
        "coroutine/switch/strand@task",
        "coroutine/run_async/depth4@callback",
        "frame_alloc/chain66@malloc",
        "frame_alloc/chain66@recycling",
        "frame_alloc/chain66@none",
        "op_alloc/composed5@malloc",
        "op_alloc/composed5@monotonic",
        "op_alloc/composed5@pmr_monotonic",
        "op_alloc/composed5@sbo",
        "op_alloc/composed5@recycling",
        "primitives/frame_recycling@core",
        "read_stream/beman/erased/sender@task",
        "read_stream/beman/native/awaitable@pipeline",
        "read_stream/stdexec/native/awaitable@pipeline_1worker",
        "read_stream/stdexec/erased/sender@sender_task",
        "read_stream/beman/erased/sender@pipeline",
    };
    CHECK_BEGIN();
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        CHECK(cpb_registry_find(ids[i]) != NULL);
        long nth = 0;
        /* Every early request, then ever sparser ones: a read stream asks for memory 60,000 times and more. */
        while (!run_with_failure(ids[i], nth) && nth < 1000000)
            nth += 1 + nth / 8;
        CHECK(nth > 0 && nth < 1000000);
    }
    return CHECK_END();
}
