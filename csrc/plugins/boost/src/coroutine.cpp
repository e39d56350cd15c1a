/* Suite `coroutine` with Boost.Asio: launches on an executor that runs everything at once, as the suite's own does.
 *
 * `bench_executor` queues nothing: dispatch and post run the function inside the call. It stands behind
 * any_io_executor, the type that Asio's users get by default, also under the strands. The loop itself is a handler of
 * an io_context, so that Asio's per-thread caches for operations and coroutine frames are in force, as in any program
 * that uses it. */
#include "contender.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>

namespace contenders
{
namespace
{

constexpr int value = 42;

template <bool Posts> class bench_executor
{
  public:
    explicit bench_executor(asio::execution_context &context) noexcept : context_(&context)
    {
    }

    asio::execution_context &query(asio::execution::context_t) const noexcept
    {
        return *context_;
    }
    static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept
    {
        if (Posts)
            return asio::execution::blocking.never;
        return asio::execution::blocking.possibly;
    }
    bench_executor<false> require(asio::execution::blocking_t::possibly_t) const noexcept
    {
        return bench_executor<false>(*context_);
    }
    bench_executor<true> require(asio::execution::blocking_t::never_t) const noexcept
    {
        return bench_executor<true>(*context_);
    }

    template <typename Function> void execute(Function function) const
    {
#if CPB_BOOST_COUNTING
        if (Posts)
            count_post();
#endif
        std::move(function)();
    }

    friend bool operator==(const bench_executor &a, const bench_executor &b) noexcept
    {
        return a.context_ == b.context_;
    }
    friend bool operator!=(const bench_executor &a, const bench_executor &b) noexcept
    {
        return a.context_ != b.context_;
    }

  private:
    asio::execution_context *context_;
};

using executor = asio::any_io_executor;

/* Two executors, or two strands over them, all made before the clock starts. */
struct launcher {
    asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_1};
    asio::io_context other{BOOST_ASIO_CONCURRENCY_HINT_1};
    executor first;
    executor second;
    std::uint64_t ops = 0;
    std::uint64_t sum = 0;
    int last = 0;
    std::exception_ptr error;
};

struct plain_launcher : launcher {
    plain_launcher()
    {
        first = bench_executor<false>(context);
        second = bench_executor<false>(other);
    }
};

struct strand_launcher : launcher {
    strand_launcher()
    {
        first = asio::make_strand(bench_executor<false>(context));
        second = asio::make_strand(bench_executor<false>(other));
    }
};

/* The completion handler. */
struct store_value {
    launcher *state;
    void operator()(int got) const
    {
        state->last = got;
        state->sum += static_cast<std::uint64_t>(got);
    }
    void operator()(std::exception_ptr error, int got) const
    {
        if (error)
            state->error = std::move(error);
        else
            (*this)(got);
    }
};

template <unsigned Depth>
[[gnu::noinline]] asio::awaitable<int>
chain()
{
    co_return co_await chain<Depth - 1>();
}

template <>
[[gnu::noinline]] asio::awaitable<int>
chain<1>()
{
    co_return value;
}

/* Asio's coroutines await nothing but Asio's awaitables; the always-ready one here stands for the foreign one. */
[[gnu::noinline]] asio::awaitable<int>
c3()
{
    co_await asio::this_coro::executor;
    co_return co_await chain<1>();
}

[[gnu::noinline]] asio::awaitable<int>
c2(const executor &target)
{
    co_return co_await asio::co_spawn(target, c3(), asio::deferred);
}

[[gnu::noinline]] asio::awaitable<int>
c1(const executor &target)
{
    co_return co_await c2(target);
}

template <unsigned Depth>
void
launch_chain(launcher &state)
{
    asio::co_spawn(state.first, chain<Depth>(), store_value{&state});
}

void
launch_switch(launcher &state)
{
    asio::co_spawn(state.first, c1(state.second), store_value{&state});
}

/* One asynchronous operation without a coroutine: its completion, with the value, is dispatched to the executor. */
void
launch_callback(launcher &state)
{
    asio::dispatch(state.first, asio::append(store_value{&state}, value));
}

using launch = void (*)(launcher &);

/* The calls of `Launch` are direct: it is a constant here. */
template <launch Launch> struct launch_loop {
    launcher *state;
    std::uint64_t ops;
    void operator()() const
    {
        for (std::uint64_t i = 0; i < ops; i++)
            Launch(*state);
    }
};

template <typename State, launch Launch>
int
run_launches(cpb_run *run, std::uint64_t ops) noexcept
{
    return guarded(run, [run, ops] {
        const counting_scope counting{run->host};
        launcher &state = state_of<State>(run);
        state.context.restart();
        asio::post(state.context, launch_loop<Launch>{&state, ops});
        state.context.run();
        if (state.error)
            std::rethrow_exception(std::exchange(state.error, nullptr));
        state.ops += ops;
        return CPB_OK;
    });
}

template <typename State>
int
verify_values(cpb_run *run) noexcept
{
    const launcher &state = state_of<State>(run);
    if (state.ops > 0 && state.last != value)
        return run->host->fail(run, CPB_E_FAILED, "the last handler got %d, not %d", state.last, value);
    if (state.sum != state.ops * value)
        return run->host->fail(run, CPB_E_FAILED, "the handlers' values sum to %llu, not %llu",
                               static_cast<unsigned long long>(state.sum),
                               static_cast<unsigned long long>(state.ops * value));
    return CPB_OK;
}

template <typename State, launch Launch>
constexpr cpb_case
row(const char *name, const char *contender, const char *summary, std::uint32_t flags, const cpb_ledger *ledger)
{
    return cell({"coroutine", name, contender, summary}, flags, ledger,
                {set_up<State>, run_launches<State, Launch>, verify_values<State>, tear_down<State>});
}

constexpr char awaitable_summary[] =
    "Asio's awaitable: co_spawn has a frame of its own, the completion is posted, two frames are cached";
constexpr char strand_summary[] =
    "Asio's awaitable on asio::strand: four mutex pairs a launch, the invoker is dispatched, not posted";
constexpr char switch_summary[] = "Asio's awaitable: the hop is a second co_spawn, whose completion hops back";

constexpr cpb_case cells[] = {
    row<plain_launcher, launch_chain<1>>("run_async/depth1", "asio-awaitable", awaitable_summary, CPB_QUICK,
                                         &promised<0, 0, 1>),
    row<plain_launcher, launch_callback>("run_async/depth1", "asio-callback",
                                         "Asio's dispatch of a handler with its value: no frame, one function object",
                                         CPB_QUICK, &promised<0, 0, 0>),
    row<plain_launcher, launch_chain<2>>("run_async/depth2", "asio-awaitable", awaitable_summary, 0,
                                         &promised<CPB_ANY, 0, 1>),
    row<plain_launcher, launch_chain<3>>("run_async/depth3", "asio-awaitable", awaitable_summary, 0,
                                         &promised<CPB_ANY, 0, 1>),
    row<plain_launcher, launch_chain<4>>("run_async/depth4", "asio-awaitable", awaitable_summary, CPB_QUICK,
                                         &promised<CPB_ANY, 0, 1>),
    row<strand_launcher, launch_chain<1>>("strand/depth1", "asio-awaitable", strand_summary, CPB_QUICK,
                                          &promised<0, 4, 1>),
    row<strand_launcher, launch_callback>("strand/depth1", "asio-callback",
                                          "Asio's dispatch of a handler to asio::strand: queued, one invoker posted",
                                          CPB_QUICK, &promised<0, 2, 0>),
    row<strand_launcher, launch_chain<4>>("strand/depth4", "asio-awaitable", strand_summary, 0,
                                          &promised<CPB_ANY, 4, 1>),
    row<plain_launcher, launch_switch>("switch/executor", "asio-awaitable", switch_summary, CPB_QUICK,
                                       &promised<CPB_ANY, 0, 2>),
    row<strand_launcher, launch_switch>("switch/strand", "asio-awaitable", switch_summary, CPB_QUICK,
                                        &promised<CPB_ANY, 8, 2>),
};

} // namespace

std::span<const cpb_case>
coroutine_cells() noexcept
{
    return cells;
}

} // namespace contenders
