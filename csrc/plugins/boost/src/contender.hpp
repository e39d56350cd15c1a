/* contender.hpp: what the contenders share: the guard at the C boundary, the tally that verifies the work, and the
 * shape of a cell. */
#ifndef CPB_BOOST_CONTENDER_HPP
#define CPB_BOOST_CONTENDER_HPP

#include "capybench.h"
#include "counting.hpp"

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <exception>
#include <new>
#include <span>
#include <utility>

namespace contenders
{

namespace asio = boost::asio;

/* Calls `body`, which answers a cpb_status; no exception leaves it. */
template <typename Body>
int
guarded(cpb_run *run, Body &&body) noexcept
{
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return run->host->fail(run, CPB_E_NO_MEMORY, "no memory for Boost's operations or frames");
    } catch (const std::exception &error) {
        return run->host->fail(run, CPB_E_FAILED, "Boost threw: %s", error.what());
    } catch (...) {
        return run->host->fail(run, CPB_E_FAILED, "an exception of unknown type was thrown");
    }
}

/* What a cell has done. `first` and `second` count completions that the work itself saw; `handlers` is what
 * io_context::run answers, so that a completion that bypassed the scheduler shows. */
struct tally {
    std::uint64_t ops = 0;
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::uint64_t handlers = 0;
    bool finished = false;
    std::exception_ptr error;
};

/* The completion handler of every loop. */
struct finish {
    tally *work;
    void operator()(std::exception_ptr error) const
    {
        work->finished = true;
        work->error = std::move(error);
    }
};

/* An io_context with concurrency hint 1, as in the published programs: posts of the running thread go to a private
 * queue, and the scheduler's mutex is real. */
struct scheduler {
    asio::io_context context{BOOST_ASIO_CONCURRENCY_HINT_1};
    tally work;
};

template <typename State>
State &
state_of(cpb_run *run) noexcept
{
    return *static_cast<State *>(run->state);
}

template <typename State>
int
set_up(cpb_run *run) noexcept
{
    if (run->abi_version != CPB_ABI_VERSION || run->host->abi_version != CPB_ABI_VERSION)
        return CPB_E_ABI;
    return guarded(run, [run] {
        run->state = new State;
        return CPB_OK;
    });
}

template <typename State>
void
tear_down(cpb_run *run) noexcept
{
    delete static_cast<State *>(run->state);
    run->state = nullptr;
}

/* Lets `launch(state, ops)` start a loop of `ops` rounds, and runs the scheduler until nothing is left. */
template <typename State, typename Launch>
int
drive(cpb_run *run, std::uint64_t ops, Launch launch) noexcept
{
    return guarded(run, [&] {
        const counting_scope counting{run->host};
        State &state = state_of<State>(run);
        state.work.finished = false;
        state.context.restart();
        launch(state, ops);
        const std::uint64_t handlers = state.context.run();
        counting.posts(handlers);
        state.work.handlers += handlers;
        if (state.work.error)
            std::rethrow_exception(std::exchange(state.work.error, nullptr));
        if (!state.work.finished)
            return run->host->fail(run, CPB_E_FAILED, "the scheduler ran dry before the loop ended");
        state.work.ops += ops;
        return static_cast<int>(CPB_OK);
    });
}

/* Per op: how many completions of either kind the work must have seen, and how many handlers the scheduler must have
 * run at least. */
template <typename State, unsigned First, unsigned Second, unsigned Handlers>
int
verify_tally(cpb_run *run) noexcept
{
    const tally &work = state_of<State>(run).work;
    using number = unsigned long long;
    if (work.first != work.ops * First)
        return run->host->fail(run, CPB_E_FAILED, "%llu completions of the first kind were seen, not %llu",
                               static_cast<number>(work.first), static_cast<number>(work.ops * First));
    if (work.second != work.ops * Second)
        return run->host->fail(run, CPB_E_FAILED, "%llu completions of the second kind were seen, not %llu",
                               static_cast<number>(work.second), static_cast<number>(work.ops * Second));
    if (work.handlers < work.ops * Handlers)
        return run->host->fail(run, CPB_E_FAILED, "the scheduler ran %llu handlers, and %llu is the least for %llu ops",
                               static_cast<number>(work.handlers), static_cast<number>(work.ops * Handlers),
                               static_cast<number>(work.ops));
    return CPB_OK;
}

/* Events per op that follow from the libraries' protocol. What depends on the size of a frame, and what cannot be seen
 * from outside the headers (indirect calls, atomics), is promised by nobody. */
template <std::int64_t Heap, std::int64_t MutexPairs, std::int64_t Posts>
inline constexpr cpb_ledger promised = {
    {Heap, CPB_ANY, CPB_ANY, CPB_ANY, CPB_ANY, CPB_ANY, CPB_ANY, MutexPairs, Posts, CPB_ANY}};

struct cell_functions {
    int (*setup)(cpb_run *);
    int (*run)(cpb_run *, std::uint64_t);
    int (*verify)(cpb_run *);
    void (*teardown)(cpb_run *);
};

struct cell_names {
    const char *suite;
    const char *name;
    const char *contender;
    const char *summary;
};

/* All contenders measure ns per op on one thread in a process that never made another. */
constexpr cpb_case
cell(cell_names names, std::uint32_t flags, const cpb_ledger *ledger, cell_functions functions)
{
    cpb_case made{};
    made.suite = names.suite;
    made.name = names.name;
    made.contender = names.contender;
    made.summary = names.summary;
    made.unit = "ns/op";
    made.direction = CPB_LOWER_IS_BETTER;
    made.thread_mode = CPB_SINGLE;
    made.flags = flags;
    made.ledger = ledger;
    made.setup = functions.setup;
    made.run = functions.run;
    made.verify = functions.verify;
    made.teardown = functions.teardown;
    return made;
}

/* The tables, one a translation unit. */
std::span<const cpb_case> awaitable_cells() noexcept;
std::span<const cpb_case> stackful_cells() noexcept;
std::span<const cpb_case> cobalt_cells() noexcept;
std::span<const cpb_case> op_alloc_cells() noexcept;
std::span<const cpb_case> coroutine_cells() noexcept;

} // namespace contenders

#endif
