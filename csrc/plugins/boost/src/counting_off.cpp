#include "counting.hpp"

namespace contenders
{

const std::uint32_t counting_build = 0;

counting_scope::counting_scope(const cpb_host *host) noexcept : host_(host)
{
}

counting_scope::~counting_scope() = default;

void
counting_scope::posts(std::uint64_t) const noexcept
{
}

std::pmr::memory_resource *
upstream() noexcept
{
    return std::pmr::new_delete_resource();
}

std::pmr::memory_resource *
counted(std::pmr::memory_resource *inner) noexcept
{
    return inner;
}

} // namespace contenders
