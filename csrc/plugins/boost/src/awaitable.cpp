/* Suite `channel` with Boost.Asio's stackless coroutines. Operations live in the two-block cache that Asio keeps a
 * thread, the executor in every handler is type-erased and counted. */
#include "contender.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace contenders
{
namespace
{

using boost::system::error_code;
using signal_channel = asio::experimental::channel<void(error_code)>;

asio::awaitable<void>
post_loop(tally &work, std::uint64_t ops)
{
    for (std::uint64_t i = 0; i < ops; i++) {
        co_await asio::post(asio::deferred);
        work.first++;
    }
}

asio::awaitable<void>
parallel_loop(tally &work, std::uint64_t ops)
{
    using asio::experimental::awaitable_operators::operator&&;
    signal_channel signals(co_await asio::this_coro::executor, 0);
    for (std::uint64_t i = 0; i < ops; i++) {
        co_await (signals.async_send(error_code(), asio::use_awaitable) && signals.async_receive(asio::use_awaitable));
        work.first++;
    }
}

asio::awaitable<void>
immediate_loop(tally &work, std::uint64_t ops)
{
    signal_channel signals(co_await asio::this_coro::executor, 1);
    for (std::uint64_t i = 0; i < ops; i++) {
        co_await signals.async_send(error_code(), asio::deferred);
        work.first++;
        co_await signals.async_receive(asio::deferred);
        work.second++;
    }
}

asio::awaitable<void>
channel_loop(tally &work, std::uint64_t ops)
{
    signal_channel signals(co_await asio::this_coro::executor, 0);
    for (std::uint64_t i = 0; i < ops; i++) {
        auto [order, sent, received] =
            co_await asio::experimental::make_parallel_group(signals.async_send(error_code(), asio::deferred),
                                                             signals.async_receive(asio::deferred))
                .async_wait(asio::experimental::wait_for_all(), asio::deferred);
        work.first += sent ? 0 : 1;
        work.second += received ? 0 : 1;
    }
}

using loop = asio::awaitable<void> (*)(tally &, std::uint64_t);

template <loop Loop>
int
run_loop(cpb_run *run, std::uint64_t ops) noexcept
{
    return drive<scheduler>(run, ops, [](scheduler &state, std::uint64_t count) {
        asio::co_spawn(state.context, Loop(state.work, count), finish{&state.work});
    });
}

template <loop Loop, unsigned First, unsigned Second, unsigned Handlers>
constexpr cpb_case
row(const char *name, const char *summary, const cpb_ledger *ledger)
{
    return cell(
        {"channel", name, "asio-awaitable", summary}, CPB_QUICK, ledger,
        {set_up<scheduler>, run_loop<Loop>, verify_tally<scheduler, First, Second, Handlers>, tear_down<scheduler>});
}

constexpr cpb_case cells[] = {
    row<post_loop, 1, 0, 1>("post", "Asio's awaitable: operation memory from the thread's cache, an awaitable thread",
                            &promised<0, 1, 1>),
    row<parallel_loop, 1, 0, 2>("parallel", "Asio's awaitable: operator && spawns two coroutines into a parallel group",
                                &promised<CPB_ANY, 2, 2>),
    row<immediate_loop, 1, 1, 2>("immediate", "Asio's awaitable: a completion at once is posted all the same",
                                 &promised<0, 2, 2>),
    row<channel_loop, 1, 1, 2>("channel", "Asio's awaitable: Asio's channel of capacity 0 in a parallel group",
                               &promised<0, 2, 2>),
};

} // namespace

std::span<const cpb_case>
awaitable_cells() noexcept
{
    return cells;
}

} // namespace contenders
