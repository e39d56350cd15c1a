/* Suite `channel` with Boost.Cobalt: tasks whose frames come from the thread's pool, operations in memory embedded in
 * the awaitable. Two things stand here as cobalt::run sets them: an unsynchronised pool as the thread's default
 * resource, and the io_context's executor as the thread's executor. */
#include "contender.hpp"

#include <boost/cobalt/channel.hpp>
#include <boost/cobalt/gather.hpp>
#include <boost/cobalt/op.hpp>
#include <boost/cobalt/spawn.hpp>
#include <boost/cobalt/task.hpp>
#include <boost/cobalt/this_coro.hpp>
#include <boost/cobalt/this_thread.hpp>

#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/post.hpp>

#include <memory_resource>
#include <tuple>

namespace contenders
{
namespace
{

namespace cobalt = boost::cobalt;
using boost::system::error_code;
using signal_channel = asio::experimental::channel<void(error_code)>;

struct cobalt_scheduler {
    std::pmr::unsynchronized_pool_resource pool{upstream()}; /* outlives the context, whose operations it may hold */
    asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_1};
    tally work;
};

/* The thread's default resource for coroutine frames, while a sample runs. */
class thread_resource
{
  public:
    explicit thread_resource(std::pmr::memory_resource *resource) noexcept
        : previous_(cobalt::this_thread::set_default_resource(resource))
    {
    }
    ~thread_resource()
    {
        cobalt::this_thread::set_default_resource(previous_);
    }
    thread_resource(const thread_resource &) = delete;
    thread_resource &operator=(const thread_resource &) = delete;

  private:
    std::pmr::memory_resource *previous_;
};

cobalt::task<void>
post_loop(tally &work, std::uint64_t ops)
{
    for (std::uint64_t i = 0; i < ops; i++) {
        co_await asio::post(cobalt::use_op);
        work.first++;
    }
}

cobalt::task<void>
parallel_loop(tally &work, std::uint64_t ops)
{
    signal_channel signals(co_await cobalt::this_coro::executor, 0);
    for (std::uint64_t i = 0; i < ops; i++) {
        auto results = co_await cobalt::gather(signals.async_send(error_code(), cobalt::use_task),
                                               signals.async_receive(cobalt::use_task));
        work.first += std::get<0>(results).has_value() ? 1 : 0;
        work.second += std::get<1>(results).has_value() ? 1 : 0;
    }
}

cobalt::task<void>
immediate_loop(tally &work, std::uint64_t ops)
{
    signal_channel signals(co_await cobalt::this_coro::executor, 1);
    for (std::uint64_t i = 0; i < ops; i++) {
        co_await signals.async_send(error_code(), cobalt::use_op);
        work.first++;
        co_await signals.async_receive(cobalt::use_op);
        work.second++;
    }
}

cobalt::task<void>
channel_loop(tally &work, std::uint64_t ops)
{
    cobalt::channel<void> signals(0);
    for (std::uint64_t i = 0; i < ops; i++) {
        auto results = co_await cobalt::gather(signals.write(), signals.read());
        work.first += std::get<0>(results).has_value() ? 1 : 0;
        work.second += std::get<1>(results).has_value() ? 1 : 0;
    }
}

using loop = cobalt::task<void> (*)(tally &, std::uint64_t);

template <loop Loop>
int
run_loop(cpb_run *run, std::uint64_t ops) noexcept
{
    return guarded(run, [run, ops] {
        const thread_resource frames(counted(&state_of<cobalt_scheduler>(run).pool));
        return drive<cobalt_scheduler>(run, ops, [](cobalt_scheduler &state, std::uint64_t count) {
            cobalt::this_thread::set_executor(state.context.get_executor());
            cobalt::spawn(state.context, Loop(state.work, count), finish{&state.work});
        });
    });
}

template <loop Loop, unsigned First, unsigned Second, unsigned Handlers>
constexpr cpb_case
row(const char *name, const char *summary, const cpb_ledger *ledger)
{
    return cell({"channel", name, "cobalt", summary}, CPB_QUICK, ledger,
                {set_up<cobalt_scheduler>, run_loop<Loop>, verify_tally<cobalt_scheduler, First, Second, Handlers>,
                 tear_down<cobalt_scheduler>});
}

constexpr cpb_case cells[] = {
    row<post_loop, 1, 0, 1>("post", "Cobalt's task: the operation in a 4096-byte buffer of the awaitable",
                            &promised<0, 1, 1>),
    row<parallel_loop, 1, 1, 1>("parallel", "Cobalt's gather of two tasks over Asio's channel of capacity 0",
                                &promised<CPB_ANY, 1, 1>),
    row<immediate_loop, 1, 1, 0>("immediate", "Cobalt's task: a completion at once runs inline, nothing is posted",
                                 &promised<0, 0, 0>),
    row<channel_loop, 1, 1, 1>("channel", "Cobalt's own channel of capacity 0: no operation, no heap, one post",
                               &promised<0, 1, 1>),
};

} // namespace

std::span<const cpb_case>
cobalt_cells() noexcept
{
    return cells;
}

} // namespace contenders
