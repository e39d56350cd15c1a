/* Suite `op_alloc`: composed operations without coroutines, chained by their handlers; what differs is the allocator
 * that the handler is associated with.
 *
 * An operation posts, makes a zero-filled array of 512 bytes, posts, makes one of 256, and three times posts and makes
 * that one anew; then it completes. The arrays are shared, each one request. Its handler starts the next operation
 * while the finished one still owns both arrays; that decides what a resource of last-in-first-out order sees. In the
 * two monotonic rows the handler first releases the whole buffer, so there the finished operation has let go of its
 * arrays just before: giving back is nothing in these rows, and touching the arrays after the release would be an
 * error. */
#include "contender.hpp"

#include <boost/asio/compose.hpp>
#include <boost/asio/post.hpp>
#include <boost/cobalt/detail/monotonic_resource.hpp>
#include <boost/cobalt/detail/sbo_resource.hpp>

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <type_traits>

namespace contenders
{
namespace
{

constexpr std::size_t buffer_size = 1024;
constexpr std::size_t large_size = 512;
constexpr std::size_t small_size = 256;
constexpr unsigned posts_per_op = 5;

/* The one array under all three resources. */
alignas(std::max_align_t) char buffer[buffer_size];

/* How a row gets its memory. `releases`: by release() at the top of every handler. */
struct std_memory {
    static constexpr bool releases = false;
};

struct monotonic_memory {
    static constexpr bool releases = true;
    using allocator_type = boost::cobalt::detail::monotonic_allocator<void>;
    boost::cobalt::detail::monotonic_resource resource{buffer, sizeof buffer};
};

struct pmr_memory {
    static constexpr bool releases = true;
    using allocator_type = std::pmr::polymorphic_allocator<void>;
    std::pmr::monotonic_buffer_resource resource{buffer, sizeof buffer, upstream()};
};

struct sbo_memory {
    static constexpr bool releases = false;
    using allocator_type = boost::cobalt::detail::sbo_allocator<void>;
    boost::cobalt::detail::sbo_resource resource{buffer, sizeof buffer, upstream()};
};

template <typename Memory> struct chain {
    Memory memory;
    asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_1};
    tally work; /* first: operations completed; second: arrays made */
};

/* Keeps the zero-fill: the compiler must believe that somebody reads the array. */
inline void
escape(const std::shared_ptr<char[]> &array)
{
    asm volatile("" : : "r"(array.get()) : "memory");
}

template <bool LetsGo> struct composed5 {
    std::uint64_t *arrays;
    std::shared_ptr<char[]> large;
    std::shared_ptr<char[]> small;
    unsigned step = 0;

    template <typename Self> void operator()(Self &self)
    {
        switch (step++) {
        case 0:
            break;
        case 1:
            large = make(self, large_size);
            break;
        default:
            small.reset();
            small = make(self, small_size);
            break;
        }
        if (step <= posts_per_op) {
            asio::post(std::move(self));
            return;
        }
        if constexpr (LetsGo) {
            large.reset();
            small.reset();
        }
        self.complete();
    }

    template <typename Self> std::shared_ptr<char[]> make(Self &self, std::size_t size)
    {
        auto array = std::allocate_shared<char[]>(self.get_allocator(), size);
        escape(array);
        ++*arrays;
        return array;
    }
};

template <typename Memory> struct next_op;

template <typename Memory>
void
start(chain<Memory> *all, std::uint64_t left)
{
    next_op<Memory> handler{all, left};
    asio::async_compose<next_op<Memory>, void()>(composed5<Memory::releases>{&all->work.second, {}, {}}, handler,
                                                 all->context.get_executor());
}

/* The handler: counts the operation and starts the next one. */
template <typename Memory> struct next_op_base {
    chain<Memory> *all;
    std::uint64_t left;

    void operator()()
    {
        if constexpr (Memory::releases)
            all->memory.resource.release();
        all->work.first++;
        if (left > 1)
            start(all, left - 1);
        else
            all->work.finished = true;
    }
};

template <typename Memory> struct next_op : next_op_base<Memory> {
    using allocator_type = typename Memory::allocator_type;
    allocator_type get_allocator() const noexcept
    {
        return allocator_type{&this->all->memory.resource};
    }
};

template <> struct next_op<std_memory> : next_op_base<std_memory> {
};

template <typename Memory>
int
run_chain(cpb_run *run, std::uint64_t ops) noexcept
{
    return drive<chain<Memory>>(run, ops, [](chain<Memory> &all, std::uint64_t count) { start(&all, count); });
}

template <typename Memory>
constexpr cpb_case
row(const char *contender, const char *summary, const cpb_ledger *ledger)
{
    using state = chain<Memory>;
    return cell(
        {"op_alloc", "composed5", contender, summary}, CPB_QUICK, ledger,
        {set_up<state>, run_chain<Memory>, verify_tally<state, 1, posts_per_op, posts_per_op>, tear_down<state>});
}

constexpr cpb_case cells[] = {
    row<std_memory>("asio-std", "Asio's default: operations from the thread's cache, arrays from operator new",
                    &promised<5, 5, 5>),
    row<monotonic_memory>("cobalt-monotonic", "Cobalt's monotonic resource on 1024 bytes, released in every handler",
                          &promised<CPB_ANY, 5, 5>),
    row<pmr_memory>("cobalt-pmr_monotonic", "std::pmr's monotonic buffer on 1024 bytes, released in every handler",
                    &promised<CPB_ANY, 5, 5>),
    row<sbo_memory>("cobalt-sbo", "Cobalt's small-buffer resource on 1024 bytes, never released",
                    &promised<CPB_ANY, 5, 5>),
};

} // namespace

std::span<const cpb_case>
op_alloc_cells() noexcept
{
    return cells;
}

} // namespace contenders
