/* Linked into the counting plug-in only. A call that an object file of the plug-in makes to `f` arrives in `__wrap_f`;
 * `__real_f` is the real one. Calls inside libstdc++ itself are not seen, which is why the resource that std::pmr hands
 * out by default is replaced while events count. */
#include "counting.hpp"

#include <cstdlib>
#include <new>
#include <pthread.h>

namespace contenders
{

const std::uint32_t counting_build = 1;

namespace
{

const cpb_host *active = nullptr;

void
count(cpb_counter counter, std::uint64_t events) noexcept
{
    if (active != nullptr)
        active->count(counter, events);
}

void
count_heap(std::size_t size) noexcept
{
    count(CPB_HEAP_ALLOCS, 1);
    count(CPB_HEAP_BYTES, size);
}

/* Upstream of pools and buffers. Its operator new is wrapped, which counts the heap. */
class upstream_resource final : public std::pmr::memory_resource
{
    void *do_allocate(std::size_t size, std::size_t alignment) override
    {
        count(CPB_UPSTREAM_ALLOCS, 1);
        return ::operator new(size, std::align_val_t(alignment));
    }
    void do_deallocate(void *memory, std::size_t size, std::size_t alignment) override
    {
        ::operator delete(memory, size, std::align_val_t(alignment));
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }
};

class counting_resource final : public std::pmr::memory_resource
{
  public:
    std::pmr::memory_resource *inner = nullptr;

  private:
    void *do_allocate(std::size_t size, std::size_t alignment) override
    {
        count(CPB_RESOURCE_ALLOCS, 1);
        return inner->allocate(size, alignment);
    }
    void do_deallocate(void *memory, std::size_t size, std::size_t alignment) override
    {
        count(CPB_RESOURCE_FREES, 1);
        inner->deallocate(memory, size, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
        return this == &other;
    }
};

upstream_resource the_upstream;
counting_resource the_counted;

} // namespace

counting_scope::counting_scope(const cpb_host *host) noexcept
    : host_(host), previous_(std::pmr::set_default_resource(&the_upstream))
{
    active = host;
}

counting_scope::~counting_scope()
{
    active = nullptr;
    std::pmr::set_default_resource(previous_);
}

void
counting_scope::posts(std::uint64_t events) const noexcept
{
    host_->count(CPB_POSTS, events);
}

void
count_post() noexcept
{
    count(CPB_POSTS, 1);
}

std::pmr::memory_resource *
upstream() noexcept
{
    return &the_upstream;
}

std::pmr::memory_resource *
counted(std::pmr::memory_resource *inner) noexcept
{
    the_counted.inner = inner;
    return &the_counted;
}

} // namespace contenders

extern "C" {

using contenders::count_heap;

void *__real_malloc(std::size_t size);
void *__real_calloc(std::size_t count, std::size_t size);
void *__real_aligned_alloc(std::size_t alignment, std::size_t size);
int __real_posix_memalign(void **memory, std::size_t alignment, std::size_t size);
void *__real__Znwm(std::size_t size);
void *__real__Znam(std::size_t size);
void *__real__ZnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t &tag);
void *__real__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);

void *
__wrap_malloc(std::size_t size)
{
    count_heap(size);
    return __real_malloc(size);
}

void *
__wrap_calloc(std::size_t count, std::size_t size)
{
    count_heap(count * size);
    return __real_calloc(count, size);
}

void *
__wrap_aligned_alloc(std::size_t alignment, std::size_t size)
{
    count_heap(size);
    return __real_aligned_alloc(alignment, size);
}

int
__wrap_posix_memalign(void **memory, std::size_t alignment, std::size_t size)
{
    count_heap(size);
    return __real_posix_memalign(memory, alignment, size);
}

void *
__wrap__Znwm(std::size_t size)
{
    count_heap(size);
    return __real__Znwm(size);
}

void *
__wrap__Znam(std::size_t size)
{
    count_heap(size);
    return __real__Znam(size);
}

void *
__wrap__ZnwmRKSt9nothrow_t(std::size_t size, const std::nothrow_t &tag)
{
    count_heap(size);
    return __real__ZnwmRKSt9nothrow_t(size, tag);
}

void *
__wrap__ZnwmSt11align_val_t(std::size_t size, std::align_val_t alignment)
{
    count_heap(size);
    return __real__ZnwmSt11align_val_t(size, alignment);
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    contenders::count(CPB_MUTEX_PAIRS, 1);
    return __real_pthread_mutex_lock(mutex);
}
}
