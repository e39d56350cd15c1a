/* What Cobalt's headers leave to libboost_cobalt and these contenders need: the thread's executor and memory resource,
 * the makers of its exceptions, its error category, and what follows an await on channel<void>. Compiled only where the
 * real library is absent; the signatures are those of the public headers, the semantics their documentation's. */
#include <boost/cobalt/channel.hpp>
#include <boost/cobalt/detail/exception.hpp>
#include <boost/cobalt/error.hpp>
#include <boost/cobalt/this_thread.hpp>

#include <boost/asio/defer.hpp>
#include <boost/asio/detail/service_registry.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/bad_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/system_error.hpp>
#include <boost/throw_exception.hpp>

#include <exception>
#include <optional>
#include <utility>

namespace boost::cobalt
{

namespace
{

thread_local pmr::memory_resource *thread_resource = nullptr; /* nullptr: std::pmr's default */
thread_local std::optional<executor> thread_executor;

/* Forgets the thread's executor when its context goes. */
class executor_keeper final : public asio::execution_context::service
{
  public:
    static inline asio::execution_context::id id;
    explicit executor_keeper(asio::execution_context &owner) : asio::execution_context::service(owner)
    {
    }

  private:
    void shutdown() override
    {
        if (thread_executor && &asio::query(*thread_executor, asio::execution::context) == &context())
            thread_executor.reset();
    }
};

/* Made once: receivers hold one of these from the start, in every task. */
template <error Reason>
const std::exception_ptr &
made()
{
    static const std::exception_ptr one = std::make_exception_ptr(system::system_error(make_error_code(Reason)));
    return one;
}

/* Wakes the other side of a channel if it can go on now. */
template <typename Queue>
void
wake_front(Queue &queue, const executor &where)
{
    if (queue.empty())
        return;
    auto &waiting = queue.front();
    if (!waiting.await_ready())
        return;
    waiting.unlink();
    asio::post(where, std::move(waiting.awaited_from));
}

template <typename Queue>
void
drop_all(Queue &queue)
{
    while (!queue.empty())
        queue.front().awaited_from.reset();
}

} // namespace

system::error_category &
cobalt_category()
{
    static cobalt_category_t category;
    return category;
}

system::error_code
make_error_code(error reason)
{
    return {static_cast<int>(reason), cobalt_category()};
}

namespace detail
{

std::exception_ptr
moved_from_exception()
{
    return made<error::moved_from>();
}

std::exception_ptr
detached_exception()
{
    return made<error::detached>();
}

std::exception_ptr
completed_unexpected()
{
    return made<error::completed_unexpected>();
}

std::exception_ptr
wait_not_ready()
{
    return made<error::wait_not_ready>();
}

std::exception_ptr
already_awaited()
{
    return made<error::already_awaited>();
}

std::exception_ptr
allocation_failed()
{
    return made<error::allocation_failed>();
}

void
throw_bad_executor(const source_location &where)
{
    throw_exception(asio::execution::bad_executor(), where);
}

} // namespace detail

namespace this_thread
{

pmr::memory_resource *
get_default_resource() noexcept
{
    return thread_resource != nullptr ? thread_resource : pmr::get_default_resource();
}

pmr::memory_resource *
set_default_resource(pmr::memory_resource *resource) noexcept
{
    pmr::memory_resource *previous = get_default_resource();
    thread_resource = resource;
    return previous;
}

pmr::polymorphic_allocator<void>
get_allocator()
{
    return {get_default_resource()};
}

bool
has_executor()
{
    return thread_executor.has_value();
}

executor &
get_executor(const source_location &where)
{
    if (!thread_executor)
        cobalt::detail::throw_bad_executor(where);
    return *thread_executor;
}

void
set_executor(executor chosen) noexcept
{
    thread_executor = std::move(chosen);
    asio::use_service<executor_keeper>(asio::query(*thread_executor, asio::execution::context));
}

} // namespace this_thread

channel<void>::~channel()
{
    drop_all(read_queue_);
    drop_all(write_queue_);
}

system::result<void>
channel<void>::read_op::await_resume(const as_result_tag &)
{
    static constexpr source_location here = BOOST_CURRENT_LOCATION;
    if (cancel_slot.is_connected())
        cancel_slot.clear();
    if (chn->is_closed_)
        return {system::in_place_error, asio::error::broken_pipe, &here};
    if (cancelled)
        return {system::in_place_error, asio::error::operation_aborted, &here};
    if (!direct)
        chn->n_--;
    wake_front(chn->write_queue_, chn->executor_);
    return {system::in_place_value};
}

void
channel<void>::read_op::await_resume()
{
    await_resume(as_result_tag{}).value(loc);
}

system::result<void>
channel<void>::write_op::await_resume(const as_result_tag &)
{
    static constexpr source_location here = BOOST_CURRENT_LOCATION;
    if (cancel_slot.is_connected())
        cancel_slot.clear();
    if (closed)
        return {system::in_place_error, asio::error::broken_pipe, &here};
    if (cancelled)
        return {system::in_place_error, asio::error::operation_aborted, &here};
    if (!direct)
        chn->n_++;
    wake_front(chn->read_queue_, chn->executor_);
    return {system::in_place_value};
}

void
channel<void>::write_op::await_resume()
{
    await_resume(as_result_tag{}).value(loc);
}

} // namespace boost::cobalt
