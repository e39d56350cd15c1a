#include "suites/coroutine_bodies.h"

#include "base/compiler.h"

/* A level that awaits another one: the frame holds the child's handle across the await. */
typedef struct level {
    cpb_task base;
    cpb_task *child;
} level;

/* The innermost level has no child, yet a coroutine's frame is no smaller for it in the size classes that count. */
typedef struct leaf {
    cpb_task base;
    void *unused;
} leaf;

typedef struct switcher {
    cpb_task base;
    cpb_task *child;
    cpb_boundary *boundary;
    cpb_executor target;
} switcher;

/* The way out of a body whose child ended, with the child already freed. */
static inline cpb_frame *
finish(cpb_task *task, bool ok, int value)
{
    return CPB_LIKELY(ok) ? cpb_task_return(task, value) : cpb_task_fail(task);
}

CPB_NOINLINE static void
destroy_leaf(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(leaf));
}

CPB_NOINLINE static cpb_frame *
resume_leaf(cpb_frame *frame)
{
    leaf *self = (leaf *)(void *)frame;
    cpb_env_restore_allocator(self->base.env);
    return cpb_task_return(&self->base, CPB_COROUTINE_VALUE);
}

CPB_NOINLINE cpb_task *
cpb_coroutine_chain1(void)
{
    leaf *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_leaf, destroy_leaf);
    return &self->base;
}

/* A level that awaits `next`, whose frame `destroy_next` frees: a parent made its child by name and frees it directly.
 */
#define DEFINE_LEVEL(name, next, destroy_next)                                                                         \
    CPB_NOINLINE static void destroy_##name(cpb_frame *frame)                                                          \
    {                                                                                                                  \
        cpb_frame_free(frame, sizeof(level));                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    CPB_NOINLINE static cpb_frame *resume_##name(cpb_frame *frame)                                                     \
    {                                                                                                                  \
        level *self = (level *)(void *)frame;                                                                          \
        cpb_env_restore_allocator(self->base.env);                                                                     \
        if (self->base.frame.state == 0) {                                                                             \
            self->child = next();                                                                                      \
            if (CPB_UNLIKELY(self->child == NULL))                                                                     \
                return cpb_task_fail(&self->base);                                                                     \
            self->base.frame.state = 1;                                                                                \
            return cpb_task_await(&self->base, self->child);                                                           \
        }                                                                                                              \
        int value = 0;                                                                                                 \
        bool ok = cpb_task_take(self->child, &value);                                                                  \
        destroy_next(&self->child->frame);                                                                             \
        return finish(&self->base, ok, value);                                                                         \
    }                                                                                                                  \
                                                                                                                       \
    CPB_NOINLINE cpb_task *cpb_coroutine_##name(void)                                                                  \
    {                                                                                                                  \
        level *self = cpb_frame_alloc(sizeof *self);                                                                   \
        if (CPB_UNLIKELY(self == NULL))                                                                                \
            return NULL;                                                                                               \
        cpb_task_init(&self->base, resume_##name, destroy_##name);                                                     \
        return &self->base;                                                                                            \
    }

DEFINE_LEVEL(chain2, cpb_coroutine_chain1, destroy_leaf)
DEFINE_LEVEL(chain3, cpb_coroutine_chain2, destroy_chain2)
DEFINE_LEVEL(chain4, cpb_coroutine_chain3, destroy_chain3)

CPB_NOINLINE static void
destroy_c3(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(level));
}

CPB_NOINLINE static cpb_frame *
resume_c3(cpb_frame *frame)
{
    level *self = (level *)(void *)frame;
    cpb_env_restore_allocator(self->base.env);
    if (self->base.frame.state == 0) {
        if (CPB_LIKELY(cpb_foreign_ready()))
            cpb_foreign_resume();
        cpb_env_restore_allocator(self->base.env);
        self->child = cpb_coroutine_chain1();
        if (CPB_UNLIKELY(self->child == NULL))
            return cpb_task_fail(&self->base);
        self->base.frame.state = 1;
        return cpb_task_await(&self->base, self->child);
    }
    int value = 0;
    bool ok = cpb_task_take(self->child, &value);
    destroy_leaf(&self->child->frame);
    return finish(&self->base, ok, value);
}

CPB_NOINLINE static cpb_task *
ramp_c3(void)
{
    level *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_c3, destroy_c3);
    return &self->base;
}

CPB_NOINLINE static void
destroy_c2(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(switcher));
}

/* Makes child and boundary; false, with neither left, when there is no memory. */
static inline bool
prepare_hop(switcher *self)
{
    self->child = ramp_c3();
    if (CPB_UNLIKELY(self->child == NULL))
        return false;
    self->boundary = cpb_boundary_create(&self->base, self->child, self->target);
    if (CPB_LIKELY(self->boundary != NULL))
        return true;
    destroy_c3(&self->child->frame);
    return false;
}

CPB_NOINLINE static cpb_frame *
resume_c2(cpb_frame *frame)
{
    switcher *self = (switcher *)(void *)frame;
    cpb_env_restore_allocator(self->base.env);
    if (self->base.frame.state == 0) {
        if (CPB_UNLIKELY(!prepare_hop(self)))
            return cpb_task_fail(&self->base);
        self->base.frame.state = 1;
        cpb_boundary_post(self->boundary);
        return NULL; /* This frame may be gone. */
    }
    int value = 0;
    bool ok = cpb_task_take(self->child, &value);
    destroy_c3(&self->child->frame);
    cpb_boundary_destroy(self->boundary);
    return finish(&self->base, ok, value);
}

CPB_NOINLINE static cpb_task *
ramp_c2(cpb_executor target)
{
    switcher *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_c2, destroy_c2);
    self->target = target;
    return &self->base;
}

CPB_NOINLINE static void
destroy_c1(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(switcher));
}

CPB_NOINLINE static cpb_frame *
resume_c1(cpb_frame *frame)
{
    switcher *self = (switcher *)(void *)frame;
    cpb_env_restore_allocator(self->base.env);
    if (self->base.frame.state == 0) {
        self->child = ramp_c2(self->target);
        if (CPB_UNLIKELY(self->child == NULL))
            return cpb_task_fail(&self->base);
        self->base.frame.state = 1;
        return cpb_task_await(&self->base, self->child);
    }
    int value = 0;
    bool ok = cpb_task_take(self->child, &value);
    destroy_c2(&self->child->frame);
    return finish(&self->base, ok, value);
}

CPB_NOINLINE cpb_task *
cpb_coroutine_switching(cpb_executor target)
{
    switcher *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_c1, destroy_c1);
    self->target = target;
    return &self->base;
}

/* Callbacks. Level d stores where to report, then starts level d-1; its completion reports upwards. */
#define DEFINE_CALLBACK_LEVEL(d, below)                                                                                \
    CPB_NOINLINE static void complete##d(cpb_callback_chain *chain, int value)                                         \
    {                                                                                                                  \
        CPB_INDIRECT(chain->done[d])(chain, value);                                                                    \
    }                                                                                                                  \
                                                                                                                       \
    CPB_NOINLINE static void start##d(cpb_callback_chain *chain, cpb_callback done)                                    \
    {                                                                                                                  \
        chain->done[d] = done;                                                                                         \
        CPB_INDIRECT(chain->starts[below])(chain, complete##d);                                                        \
    }

CPB_NOINLINE static void
start1(cpb_callback_chain *chain, cpb_callback done)
{
    CPB_INDIRECT(done)(chain, CPB_COROUTINE_VALUE);
}

DEFINE_CALLBACK_LEVEL(2, 1)
DEFINE_CALLBACK_LEVEL(3, 2)
DEFINE_CALLBACK_LEVEL(4, 3)

void
cpb_callback_chain_init(cpb_callback_chain *chain)
{
    chain->starts[1] = start1;
    chain->starts[2] = start2;
    chain->starts[3] = start3;
    chain->starts[4] = start4;
}
