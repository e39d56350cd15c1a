/* counting.hpp: the ledger's hooks.
 *
 * The measured and the counting plug-in share their object files; the counting one is linked with `counting_on.cpp` and
 * `--wrap`, so that calls of malloc and its kin, operator new and pthread_mutex_lock which the contenders make go
 * through counters. `counting_off.cpp` answers the same hooks with nothing. None of them is called inside a loop that
 * is measured; only `coroutine.cpp`, whose executor counts posts, is compiled twice. */
#ifndef CPB_BOOST_COUNTING_HPP
#define CPB_BOOST_COUNTING_HPP

#include "capybench.h"

#include <cstdint>
#include <memory_resource>

namespace contenders
{

/* 1 in the counting plug-in. */
extern const std::uint32_t counting_build;

/* While it lives, events are reported to the host, and std::pmr's default resource is one that counts. */
class counting_scope
{
  public:
    explicit counting_scope(const cpb_host *host) noexcept;
    ~counting_scope();
    counting_scope(const counting_scope &) = delete;
    counting_scope &operator=(const counting_scope &) = delete;

    /* `events` handlers were run by a scheduler, each of them posted to it. */
    void posts(std::uint64_t events) const noexcept;

  private:
    const cpb_host *host_;
    std::pmr::memory_resource *previous_ = nullptr;
};

/* Counts one post; only the counting build of coroutine.cpp calls it. */
void count_post() noexcept;

/* Where pools and buffers get memory when they run out: operator new, counted where counting is on. */
std::pmr::memory_resource *upstream() noexcept;

/* `inner`, or a resource in front of it that counts. One at a time. */
std::pmr::memory_resource *counted(std::pmr::memory_resource *inner) noexcept;

} // namespace contenders

#endif
