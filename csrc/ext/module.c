/* The extension module: method table, state, slots. Built twice, as _core (measures) and _ledger (counts). */
#include "ext.h"

#include "base/ledger.h"
#include "base/pace.h"
#include "base/process.h"
#include "base/thread.h"

module_state *
ext_state(PyObject *module)
{
    return PyModule_GetState(module);
}

static PyObject *
single_threaded(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(cpb_thread_single());
}

static PyObject *
pace(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    uint64_t ns;
    Py_BEGIN_ALLOW_THREADS
    ns = cpb_pace_ns();
    Py_END_ALLOW_THREADS
    return PyLong_FromUnsignedLongLong(ns);
}

static PyObject *
heap_in_use(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(cpb_heap_in_use());
}

static PyMethodDef methods[] = {
    {"build", ext_build, METH_NOARGS,
     "build() -> dict[str, str]\n\nCompiler, flags, architecture, C library and build id of this module."},
    {"suites", ext_suites, METH_NOARGS,
     "suites() -> list[dict]\n\nname, summary and baselines (contenders, best first) of each suite."},
    {"cases", ext_cases, METH_NOARGS,
     "cases() -> list[dict]\n\nEvery cell the core knows, in the order of the tables, then those of loaded plug-ins."},
    {"load_plugin", ext_load_plugin, METH_O,
     "load_plugin(path) -> dict\n\nOpens a plug-in, checks it and adds its cells: name, version, counting, cells. The "
     "path\n"
     "must contain a '/'. Raises CoreError with the reason; its status is 'abi' when it was built for another "
     "version."},
    {"heap_in_use", heap_in_use, METH_NOARGS,
     "heap_in_use() -> int\n\nBytes that the C library's allocator has handed out and not got back."},
    {"pace", pace, METH_NOARGS,
     "pace() -> int\n\nRuns the pace probe, a fixed piece of arithmetic, without the GIL; the ns that it took."},
    {"single_threaded", single_threaded, METH_NOARGS,
     "single_threaded() -> bool\n\nWhether this process has never created a thread, by the C library's own flag."},
    {NULL, NULL, 0, NULL},
};

static int
exec_module(PyObject *module)
{
    module_state *state = ext_state(module);
    state->core_error = PyErr_NewExceptionWithDoc(
        CPB_MODULE_NAME ".CoreError", "A cell failed. The attribute status says how, in a word.", NULL, NULL);
    if (state->core_error == NULL || PyModule_AddObjectRef(module, "CoreError", state->core_error) < 0)
        return -1;
    state->run_type = ext_make_run_type(module);
    if (state->run_type == NULL || PyModule_AddObjectRef(module, "Run", state->run_type) < 0)
        return -1;
    PyObject *counting = cpb_ledger_counting() ? Py_True : Py_False;
    if (PyModule_AddObjectRef(module, "counting", counting) < 0)
        return -1;
    return PyModule_AddIntConstant(module, "abi_version", CPB_ABI_VERSION);
}

static int
traverse(PyObject *module, visitproc visit, void *arg)
{
    module_state *state = ext_state(module);
    Py_VISIT(state->core_error);
    Py_VISIT(state->run_type);
    return 0;
}

static int
clear(PyObject *module)
{
    module_state *state = ext_state(module);
    Py_CLEAR(state->core_error);
    Py_CLEAR(state->run_type);
    return 0;
}

static void
release(void *module)
{
    clear(module);
    cpb_plugins_fini(&ext_state(module)->plugins);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, exec_module},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = CPB_MODULE_NAME,
    .m_doc = "The core of capybench: suites, cells and their measurement. See capybench.run for the way in.",
    .m_size = sizeof(module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
    .m_free = release,
};

#define INIT_NAME_(module) PyInit_##module
#define INIT_NAME(module) INIT_NAME_(module)

PyMODINIT_FUNC INIT_NAME(CPB_MODULE)(void);

PyMODINIT_FUNC
INIT_NAME(CPB_MODULE)(void)
{
    return PyModuleDef_Init(&definition);
}
