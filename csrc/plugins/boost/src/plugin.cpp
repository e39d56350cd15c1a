/* The plug-in's entry, the only symbol that it exports. */
#include "contender.hpp"

#include <boost/version.hpp>

#include <array>
#include <cstddef>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

#if CPB_BOOST_COBALT_LIBRARY
#    define COBALT_RUNTIME "libboost_cobalt"
#else
#    define COBALT_RUNTIME "Cobalt's compiled part supplied by the plug-in"
#endif

namespace contenders
{
namespace
{

struct table {
    std::array<cpb_case, 32> cells{};
    std::size_t count = 0;

    table() noexcept
    {
        for (auto part : {awaitable_cells(), stackful_cells(), cobalt_cells(), op_alloc_cells(), coroutine_cells()})
            for (const cpb_case &one : part)
                if (count < cells.size())
                    cells[count++] = one;
    }
};

constexpr char version[] = CPB_BOOST_VERSION
    " (Boost " TEXT(CPB_BOOST_MAJOR) "." TEXT(CPB_BOOST_MINOR) "." TEXT(CPB_BOOST_PATCH) ", " COBALT_RUNTIME
                                                                                         ", g++ " __VERSION__ ")";

} // namespace
} // namespace contenders

extern "C" [[gnu::visibility("default")]] const cpb_plugin *
capybench_plugin_v1(void)
{
    static const contenders::table all;
    static const cpb_plugin plugin = {
        .abi_version = CPB_ABI_VERSION,
        .struct_size = sizeof(cpb_plugin),
        .name = "boost",
        .version = contenders::version,
        .cells = all.cells.data(),
        .cell_count = all.count,
        .case_size = sizeof(cpb_case),
        .counting = contenders::counting_build,
    };
    return &plugin;
}
