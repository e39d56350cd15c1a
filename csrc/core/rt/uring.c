#include "rt/uring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ledger.h"

/* Of kernels newer than the headers this may be built with. */
#ifndef IORING_SETUP_COOP_TASKRUN
#    define IORING_SETUP_COOP_TASKRUN (1U << 8)
#endif
#ifndef IORING_SETUP_SINGLE_ISSUER
#    define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#    define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

static int
setup(unsigned entries, struct io_uring_params *params)
{
    return (int)syscall(__NR_io_uring_setup, entries, params);
}

const char *
cpb_uring_unavailable(void)
{
    struct io_uring_params params = {0};
    int fd = setup(1, &params);
    if (fd < 0) {
        switch (errno) {
        case ENOSYS:
            return "this kernel has no io_uring";
        case EPERM:
        case EACCES:
            return "io_uring is forbidden here, by a seccomp filter or by kernel.io_uring_disabled";
        case ENOMEM:
            return "io_uring needs more locked memory than the limit (ulimit -l) allows";
        case EMFILE:
        case ENFILE:
            return "io_uring needs a file descriptor, and the limit (ulimit -n) is reached";
        default:
            return "io_uring cannot be set up here";
        }
    }
    close(fd);
    if (!(params.features & IORING_FEAT_EXT_ARG) || !(params.features & IORING_FEAT_SINGLE_MMAP))
        return "io_uring of this kernel is too old: it takes Linux 5.11";
    return NULL;
}

/* The best of the wanted flags that this kernel takes. */
static int
setup_with_flags(unsigned entries, bool single, bool cooperative, struct io_uring_params *params)
{
    const uint32_t wishes[] = {
        (single ? IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN : 0u) |
            (cooperative && !single ? IORING_SETUP_COOP_TASKRUN : 0u),
        cooperative ? IORING_SETUP_COOP_TASKRUN : 0u,
        0u,
    };
    int fd = -1;
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes && fd < 0; i++) {
        memset(params, 0, sizeof *params);
        params->flags = wishes[i] | IORING_SETUP_CQSIZE;
        params->cq_entries = entries * 8;
        fd = setup(entries, params);
        if (fd < 0 && errno != EINVAL)
            break;
    }
    return fd;
}

int
cpb_uring_init(cpb_uring *ring, unsigned entries, bool single, bool cooperative)
{
    struct io_uring_params params;
    memset(ring, 0, sizeof *ring);
    ring->fd = setup_with_flags(entries, single, cooperative, &params);
    if (ring->fd < 0)
        return CPB_E_SYSTEM;
    size_t sq_size = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
    size_t cq_size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    ring->rings_size = sq_size > cq_size ? sq_size : cq_size;
    ring->entries_size = params.sq_entries * sizeof(struct io_uring_sqe);
    ring->rings = mmap(NULL, ring->rings_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
                       (off_t)IORING_OFF_SQ_RING);
    void *mapped = MAP_FAILED;
    if (ring->rings != MAP_FAILED)
        mapped = mmap(NULL, ring->entries_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
                      (off_t)IORING_OFF_SQES);
    if (mapped == MAP_FAILED) {
        int error = errno;
        if (ring->rings != MAP_FAILED)
            munmap(ring->rings, ring->rings_size);
        close(ring->fd);
        ring->fd = -1;
        errno = error;
        return CPB_E_SYSTEM;
    }
    char *base = ring->rings;
    ring->entries = mapped;
    ring->features = params.features;
    ring->flags = params.flags;
    ring->sq_head = (uint32_t *)(void *)(base + params.sq_off.head);
    ring->sq_tail = (uint32_t *)(void *)(base + params.sq_off.tail);
    ring->sq_array = (uint32_t *)(void *)(base + params.sq_off.array);
    ring->sq_mask = *(uint32_t *)(void *)(base + params.sq_off.ring_mask);
    ring->sq_entries = params.sq_entries;
    ring->cq_head = (uint32_t *)(void *)(base + params.cq_off.head);
    ring->cq_tail = (uint32_t *)(void *)(base + params.cq_off.tail);
    ring->cq_mask = *(uint32_t *)(void *)(base + params.cq_off.ring_mask);
    ring->completions = (struct io_uring_cqe *)(void *)(base + params.cq_off.cqes);
    for (uint32_t i = 0; i < params.sq_entries; i++)
        ring->sq_array[i] = i;
    return CPB_OK;
}

void
cpb_uring_fini(cpb_uring *ring)
{
    if (ring->fd < 0)
        return;
    munmap(ring->entries, ring->entries_size);
    munmap(ring->rings, ring->rings_size);
    close(ring->fd);
    ring->fd = -1;
}

struct io_uring_sqe *
cpb_uring_entry(cpb_uring *ring)
{
    uint32_t tail = *ring->sq_tail;
    if (tail - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE) == ring->sq_entries) {
        unsigned submit = ring->unsubmitted;
        int submitted = cpb_uring_enter(ring, submit, 0, 0);
        ring->unsubmitted -= submitted > 0 ? (unsigned)submitted : 0;
        if (tail - __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE) == ring->sq_entries)
            return NULL;
    }
    struct io_uring_sqe *entry = &ring->entries[tail & ring->sq_mask];
    memset(entry, 0, sizeof *entry);
    /* The kernel looks at the tail when it is entered, and the entry is filled by then. */
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    ring->unsubmitted++;
    return entry;
}

int
cpb_uring_enter(cpb_uring *ring, unsigned submit, unsigned wanted, int64_t timeout_ns)
{
    struct __kernel_timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
    struct io_uring_getevents_arg argument = {.ts = (uint64_t)(uintptr_t)&timeout};
    CPB_COUNT(CPB_SYSCALLS);
    CPB_COUNT(CPB_POLLS);
    long result;
    if (wanted > 0 && timeout_ns >= 0)
        result = syscall(__NR_io_uring_enter, ring->fd, submit, wanted, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
                         &argument, sizeof argument);
    else
        result = syscall(__NR_io_uring_enter, ring->fd, submit, wanted, IORING_ENTER_GETEVENTS, NULL, 0);
    return result < 0 ? -errno : (int)result;
}

struct io_uring_cqe *
cpb_uring_peek(cpb_uring *ring)
{
    uint32_t head = *ring->cq_head;
    if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
        return NULL;
    return &ring->completions[head & ring->cq_mask];
}

void
cpb_uring_seen(cpb_uring *ring)
{
    __atomic_store_n(ring->cq_head, *ring->cq_head + 1, __ATOMIC_RELEASE);
}
