/* The floor of suite `frame_alloc`: the same levels and the same protocol, but each frame is embedded in its caller's,
 * so that a pass asks no allocator for anything. What remains is the await protocol itself. */
#include "base/atomic.h"
#include "base/compiler.h"
#include "suites/frame_alloc_bodies.h"

typedef struct level4 {
    cpb_task base;
} level4;

#define DEFINE_FRAME(name, below)                                                                                      \
    typedef struct name {                                                                                              \
        cpb_task base;                                                                                                 \
        cpb_task *child;                                                                                               \
        uint64_t done;                                                                                                 \
        below child_frame;                                                                                             \
    } name;

DEFINE_FRAME(level3, level4)
DEFINE_FRAME(level2, level3)
DEFINE_FRAME(level1, level2)

typedef struct root {
    cpb_task base;
    cpb_task *child;
    uint64_t done;
    uint64_t passes;
    level1 child_frame;
} root;

CPB_NOINLINE static void
destroy_embedded(cpb_frame *frame)
{
    (void)frame;
}

CPB_NOINLINE static cpb_frame *
resume_level4(cpb_frame *frame)
{
    level4 *self = (level4 *)(void *)frame;
    cpb_env_restore_allocator(self->base.env);
    cpb_atomic_add_relaxed(&cpb_frame_alloc_counter, 1);
    return cpb_task_return_void(&self->base);
}

CPB_NOINLINE static cpb_task *
ramp_level4(level4 *self)
{
    cpb_task_init(&self->base, resume_level4, destroy_embedded);
    return &self->base;
}

#define DEFINE_CHILD(name, below)                                                                                      \
    static inline cpb_task *make_child_of_##name(name *self)                                                           \
    {                                                                                                                  \
        return ramp_##below(&self->child_frame);                                                                       \
    }                                                                                                                  \
                                                                                                                       \
    static inline void drop_child_of_##name(name *self)                                                                \
    {                                                                                                                  \
        destroy_embedded(&self->child->frame);                                                                         \
    }

#define DEFINE_LEVEL(name, count, below)                                                                               \
    DEFINE_CHILD(name, below)                                                                                          \
    CPB_DEFINE_LOOP_RESUME(resume_##name, name, count, make_child_of_##name, drop_child_of_##name)                     \
                                                                                                                       \
    CPB_NOINLINE static cpb_task *ramp_##name(name *self)                                                              \
    {                                                                                                                  \
        cpb_task_init(&self->base, resume_##name, destroy_embedded);                                                   \
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

DEFINE_CHILD(root, level1)
CPB_DEFINE_LOOP_RESUME(resume_root, root, self->passes, make_child_of_root, drop_child_of_root)

CPB_NOINLINE cpb_task *
cpb_frame_alloc_root_embedded(uint64_t passes)
{
    root *self = cpb_frame_alloc(sizeof *self);
    if (CPB_UNLIKELY(self == NULL))
        return NULL;
    cpb_task_init(&self->base, resume_root, destroy_root);
    self->done = 0;
    self->passes = passes;
    return &self->base;
}
