/* What exists: suites, cells and build facts as plain Python objects. */
#include "ext.h"

#include "base/build_info.h"
#include "base/ledger.h"
#include "registry.h"

int
ext_dict_take(PyObject *dict, const char *key, PyObject *value)
{
    if (value == NULL)
        return -1;
    int result = PyDict_SetItemString(dict, key, value);
    Py_DECREF(value);
    return result;
}

static PyObject *
text_or_none(const char *text)
{
    if (text == NULL)
        Py_RETURN_NONE;
    return ext_text(text);
}

static PyObject *
flag(int value)
{
    return PyBool_FromLong(value);
}

static PyObject *
cell_id(const cpb_case *cell)
{
    return PyUnicode_FromFormat("%s/%s@%s", cell->suite, cell->name, cell->contender);
}

/* The promised ledger; counters without a promise are absent. */
static PyObject *
ledger_dict(const cpb_ledger *ledger)
{
    if (ledger == NULL)
        Py_RETURN_NONE;
    PyObject *dict = PyDict_New();
    for (int i = 0; dict != NULL && i < CPB_LEDGER_COUNT; i++) {
        if (ledger->per_op[i] == CPB_ANY)
            continue;
        if (ext_dict_take(dict, cpb_counter_key((cpb_counter)i), PyLong_FromLongLong(ledger->per_op[i])) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *
cell_dict(const cpb_case *cell, const cpb_plugin *plugin)
{
    PyObject *dict = PyDict_New();
    if (dict == NULL)
        return NULL;
    const char *reason = cpb_cell_unavailable(cell);
    uint64_t step = cell->step > 0 ? cell->step : 1;
    long cpus = cell->cpus > 0 ? (long)cell->cpus : 1;
    if (ext_dict_take(dict, "id", cell_id(cell)) < 0 ||
        ext_dict_take(dict, "suite", PyUnicode_FromString(cell->suite)) < 0 ||
        ext_dict_take(dict, "case", PyUnicode_FromString(cell->name)) < 0 ||
        ext_dict_take(dict, "contender", PyUnicode_FromString(cell->contender)) < 0 ||
        ext_dict_take(dict, "summary", PyUnicode_FromString(cell->summary)) < 0 ||
        ext_dict_take(dict, "unit", PyUnicode_FromString(cell->unit)) < 0 ||
        ext_dict_take(dict, "direction",
                      PyUnicode_FromString(cell->direction == CPB_HIGHER_IS_BETTER ? "higher" : "lower")) < 0 ||
        ext_dict_take(dict, "thread_mode",
                      PyUnicode_FromString(cell->thread_mode == CPB_SINGLE ? "single" : "threaded")) < 0 ||
        ext_dict_take(dict, "step", PyLong_FromUnsignedLongLong(step)) < 0 ||
        ext_dict_take(dict, "quick", flag((cell->flags & CPB_QUICK) != 0)) < 0 ||
        ext_dict_take(dict, "cpus", PyLong_FromLong(cpus)) < 0 ||
        ext_dict_take(dict, "bytes_per_op", PyLong_FromUnsignedLongLong(cell->bytes_per_op)) < 0 ||
        ext_dict_take(dict, "python", flag((cell->flags & CPB_PYTHON) != 0)) < 0 ||
        ext_dict_take(dict, "latency", flag(cell->latency != NULL)) < 0 ||
        ext_dict_take(dict, "ledger", ledger_dict(cell->ledger)) < 0 ||
        ext_dict_take(dict, "available", flag(reason == NULL)) < 0 ||
        ext_dict_take(dict, "reason", text_or_none(reason)) < 0 ||
        ext_dict_take(dict, "plugin", text_or_none(plugin != NULL ? plugin->name : NULL)) < 0)
        Py_CLEAR(dict);
    return dict;
}

/* Appends a new reference and gives it up. */
static int
list_take(PyObject *list, PyObject *item)
{
    if (item == NULL)
        return -1;
    int result = PyList_Append(list, item);
    Py_DECREF(item);
    return result;
}

/* Appends a dict for each of `count` cells; answers 0 or -1. */
static int
list_cells(PyObject *list, const cpb_case *cells, size_t count, const cpb_plugin *plugin)
{
    for (size_t i = 0; i < count; i++) {
        if (list_take(list, cell_dict(&cells[i], plugin)) < 0)
            return -1;
    }
    return 0;
}

PyObject *
ext_cases(PyObject *module, PyObject *unused)
{
    (void)unused;
    const module_state *state = ext_state(module);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < cpb_registry_suite_count(); i++) {
        const cpb_suite *suite = cpb_registry_suite(i);
        if (list_cells(list, suite->cells, suite->cell_count, NULL) < 0)
            Py_CLEAR(list);
    }
    for (const cpb_loaded *loaded = state->plugins.first; list != NULL && loaded != NULL; loaded = loaded->next) {
        if (list_cells(list, loaded->table->cells, loaded->table->cell_count, loaded->table) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *
ext_load_plugin(PyObject *module, PyObject *path)
{
    module_state *state = ext_state(module);
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    const cpb_plugin *plugin = NULL;
    cpb_error error = {0};
    int status = cpb_plugins_load(&state->plugins, PyBytes_AsString(bytes), &plugin, &error);
    Py_DECREF(bytes);
    if (status != CPB_OK)
        return ext_raise(state, &error);
    PyObject *cells = PyList_New(0);
    PyObject *dict = PyDict_New();
    if (cells == NULL || dict == NULL || list_cells(cells, plugin->cells, plugin->cell_count, plugin) < 0 ||
        PyDict_SetItemString(dict, "cells", cells) < 0 ||
        ext_dict_take(dict, "name", PyUnicode_FromString(plugin->name)) < 0 ||
        ext_dict_take(dict, "version", PyUnicode_FromString(plugin->version)) < 0 ||
        ext_dict_take(dict, "counting", flag(plugin->counting != 0)) < 0)
        Py_CLEAR(dict);
    Py_XDECREF(cells);
    return dict;
}

/* The names in a blank-separated string, as a list. */
static PyObject *
split(const char *names)
{
    PyObject *text = PyUnicode_FromString(names);
    if (text == NULL)
        return NULL;
    PyObject *list = PyUnicode_Split(text, NULL, -1);
    Py_DECREF(text);
    return list;
}

static PyObject *
suite_dict(const cpb_suite *suite)
{
    PyObject *dict = PyDict_New();
    if (dict == NULL)
        return NULL;
    if (ext_dict_take(dict, "name", PyUnicode_FromString(suite->name)) < 0 ||
        ext_dict_take(dict, "summary", PyUnicode_FromString(suite->summary)) < 0 ||
        ext_dict_take(dict, "baselines", split(suite->baselines)) < 0)
        Py_CLEAR(dict);
    return dict;
}

PyObject *
ext_suites(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < cpb_registry_suite_count(); i++) {
        if (list_take(list, suite_dict(cpb_registry_suite(i))) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *
ext_build(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *dict = PyDict_New();
    if (dict == NULL)
        return NULL;
    for (const cpb_build_fact *fact = cpb_build_facts(); fact->key != NULL; fact++) {
        if (ext_dict_take(dict, fact->key, PyUnicode_FromString(fact->value)) < 0)
            goto fail;
    }
    char text[96];
    cpb_build_id(text, sizeof text);
    if (ext_dict_take(dict, "build_id", PyUnicode_FromString(text)) < 0)
        goto fail;
    cpb_libc_version(text, sizeof text);
    if (ext_dict_take(dict, "libc", PyUnicode_FromString(text)) < 0)
        goto fail;
    return dict;
fail:
    Py_DECREF(dict);
    return NULL;
}
