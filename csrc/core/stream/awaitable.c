#include "stream/awaitable.h"

static void
abstract_read_some(cpb_read_stream *self, const struct iovec *buffer, cpb_awaitable *out)
{
    (void)self;
    (void)buffer;
    out->self.frame = NULL;
    out->self.next = NULL;
}

static void (*const abstract_table[])(cpb_read_stream *, const struct iovec *, cpb_awaitable *) = {abstract_read_some};

static void
erased_construct(void *storage, void *model, const struct iovec *buffer)
{
    abstract_read_some(model, buffer, storage);
}

static bool
erased_ready(void *storage)
{
    (void)storage;
    return false;
}

static cpb_frame *
erased_suspend(void *storage, cpb_frame *frame, const cpb_env *env)
{
    return cpb_awaitable_suspend(storage, frame, env);
}

static cpb_read_result
erased_resume(void *storage)
{
    (void)storage;
    return (cpb_read_result){0, NULL, 0};
}

static void
erased_destroy(void *storage)
{
    (void)storage;
}

static const cpb_erased_awaitable_table erased_table = {erased_construct, erased_ready, erased_suspend, erased_resume,
                                                        erased_destroy};

void
cpb_awaitable_streams_init(cpb_awaitable_streams *streams)
{
    streams->model.table = abstract_table;
    streams->abstract = cpb_launder(&streams->model);
    streams->any.table = &erased_table;
    streams->any.model = &streams->model;
    streams->erased = cpb_launder(&streams->any);
}
