#include "suites/frame_alloc_bodies.h"

#include "base/atomic.h"
#include "base/compiler.h"

_Atomic(uint64_t) cpb_frame_alloc_counter;

typedef struct leaf {
    cpb_task base;
} leaf;

typedef struct loop {
    cpb_task base;
    cpb_task *child;
    uint64_t done;
} loop;

typedef struct root {
    cpb_task base;
    cpb_task *child;
    uint64_t done;
    uint64_t passes;
} root;

CPB_NOINLINE static void
destroy_level4(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(leaf));
}

CPB_NOINLINE static cpb_frame *
resume_level4(cpb_frame *frame)
{
    leaf *self = (leaf *)(void *)frame;
    cpb_env_restore_allocator(self->base.env);
    cpb_atomic_add_relaxed(&cpb_frame_alloc_counter, 1);
    return cpb_task_return_void(&self->base);
}

CPB_NOINLINE static cpb_task *
ramp_level4(void)
{
    leaf *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_level4, destroy_level4);
    return &self->base;
}

/* One level: its destroy, resume and ramp. A parent frees its child directly, since it made it by name. */
#define DEFINE_LEVEL(name, count, below)                                                                               \
    CPB_NOINLINE static void destroy_##name(cpb_frame *frame)                                                          \
    {                                                                                                                  \
        cpb_frame_free(frame, sizeof(loop));                                                                           \
    }                                                                                                                  \
                                                                                                                       \
    static inline cpb_task *make_child_of_##name(loop *self)                                                           \
    {                                                                                                                  \
        (void)self;                                                                                                    \
        return ramp_##below();                                                                                         \
    }                                                                                                                  \
                                                                                                                       \
    static inline void drop_child_of_##name(loop *self)                                                                \
    {                                                                                                                  \
        destroy_##below(&self->child->frame);                                                                          \
    }                                                                                                                  \
                                                                                                                       \
    CPB_DEFINE_LOOP_RESUME(resume_##name, loop, count, make_child_of_##name, drop_child_of_##name)                     \
                                                                                                                       \
    CPB_NOINLINE static cpb_task *ramp_##name(void)                                                                    \
    {                                                                                                                  \
        loop *self = cpb_frame_alloc(sizeof *self);                                                                    \
        if (CPB_UNLIKELY(self == NULL))                                                                                \
            return NULL;                                                                                               \
        cpb_task_init(&self->base, resume_##name, destroy_##name);                                                     \
        self->done = 0;                                                                                                \
        return &self->base;                                                                                            \
    }

DEFINE_LEVEL(level3, 3, level4)
DEFINE_LEVEL(level2, 3, level3)
DEFINE_LEVEL(level1, 5, level2)

CPB_NOINLINE static void
destroy_root(cpb_frame *frame)
{
    cpb_frame_free(frame, sizeof(root));
}

static inline cpb_task *
make_child_of_root(root *self)
{
    (void)self;
    return ramp_level1();
}

static inline void
drop_child_of_root(root *self)
{
    destroy_level1(&self->child->frame);
}

CPB_DEFINE_LOOP_RESUME(resume_root, root, self->passes, make_child_of_root, drop_child_of_root)

CPB_NOINLINE cpb_task *
cpb_frame_alloc_root(uint64_t passes)
{
    root *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_root, destroy_root);
    self->done = 0;
    self->passes = passes;
    return &self->base;
}
