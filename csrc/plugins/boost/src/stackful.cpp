/* Suite `channel` with Boost.Asio's stackful coroutines on Boost.Context: two switches of the machine's context a
 * suspension. The stack of the loop comes from malloc, without a guard page, once a sample. */
#include "contender.hpp"

#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/spawn.hpp>

#include <tuple>

namespace contenders
{
namespace
{

using boost::system::error_code;
using signal_channel = asio::experimental::channel<void(error_code)>;

void
post_loop(tally &work, std::uint64_t ops, asio::yield_context &yield)
{
    for (std::uint64_t i = 0; i < ops; i++) {
        asio::post(yield);
        work.first++;
    }
}

void
immediate_loop(tally &work, std::uint64_t ops, asio::yield_context &yield)
{
    signal_channel signals(yield.get_executor(), 1);
    for (std::uint64_t i = 0; i < ops; i++) {
        signals.async_send(error_code(), yield);
        work.first++;
        signals.async_receive(yield);
        work.second++;
    }
}

void
channel_loop(tally &work, std::uint64_t ops, asio::yield_context &yield)
{
    signal_channel signals(yield.get_executor(), 0);
    for (std::uint64_t i = 0; i < ops; i++) {
        auto [order, sent, received] =
            asio::experimental::make_parallel_group(signals.async_send(error_code(), asio::deferred),
                                                    signals.async_receive(asio::deferred))
                .async_wait(asio::experimental::wait_for_all(), yield);
        work.first += sent ? 0 : 1;
        work.second += received ? 0 : 1;
    }
}

using loop = void (*)(tally &, std::uint64_t, asio::yield_context &);

template <loop Loop>
int
run_loop(cpb_run *run, std::uint64_t ops) noexcept
{
    return drive<scheduler>(run, ops, [](scheduler &state, std::uint64_t count) {
        asio::spawn(
            state.context, [&state, count](asio::yield_context yield) { Loop(state.work, count, yield); },
            finish{&state.work});
    });
}

template <loop Loop, unsigned First, unsigned Second, unsigned Handlers>
constexpr cpb_case
row(const char *name, const char *summary, const cpb_ledger *ledger)
{
    return cell(
        {"channel", name, "asio-stackful", summary}, CPB_QUICK, ledger,
        {set_up<scheduler>, run_loop<Loop>, verify_tally<scheduler, First, Second, Handlers>, tear_down<scheduler>});
}

constexpr cpb_case cells[] = {
    row<post_loop, 1, 0, 1>("post", "Asio's yield_context: two context switches a post, handler memory from the cache",
                            &promised<0, 1, 1>),
    row<immediate_loop, 1, 1, 2>("immediate", "Asio's yield_context: a completion at once is posted all the same",
                                 &promised<0, 2, 2>),
    row<channel_loop, 1, 1, 2>("channel", "Asio's yield_context: Asio's channel of capacity 0 in a parallel group",
                               &promised<0, 2, 2>),
};

} // namespace

std::span<const cpb_case>
stackful_cells() noexcept
{
    return cells;
}

} // namespace contenders
