/* ext.h: what the files of the extension share. Each file here includes Python.h; no other folder does.
 *
 * The module uses the limited API of 3.11 and multi-phase initialisation; everything it owns hangs on its state. While
 * the GIL is released no Python object is touched: errors travel as cpb_error and become exceptions in one function. */
#ifndef CPB_EXT_H
#define CPB_EXT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "capybench.h"
#include "plugin.h"
#include "run.h"

/* setup.py names the module that is built: _core measures, _ledger counts. */
#ifndef CPB_MODULE
#    define CPB_MODULE _core
#endif
#define CPB_STRINGIFY_(x) #x
#define CPB_STRINGIFY(x) CPB_STRINGIFY_(x)
#define CPB_MODULE_NAME "capybench." CPB_STRINGIFY(CPB_MODULE)

typedef struct module_state {
    PyObject *core_error; /* CoreError */
    PyObject *run_type;   /* Run */
    cpb_plugin_set plugins;
} module_state;

/* The state of a module object. */
module_state *ext_state(PyObject *module);

/* A string made of bytes that may be no UTF-8: texts of plug-ins, messages that were cut. */
PyObject *ext_text(const char *text);

/* Sets the exception for an error and answers NULL. */
PyObject *ext_raise(const module_state *state, const cpb_error *error);

/* The Run type, made for `module`; new reference. */
PyObject *ext_make_run_type(PyObject *module);

/* Functions of the module. */
PyObject *ext_build(PyObject *module, PyObject *unused);
PyObject *ext_suites(PyObject *module, PyObject *unused);
PyObject *ext_cases(PyObject *module, PyObject *unused);
PyObject *ext_load_plugin(PyObject *module, PyObject *path);

/* Stores a new reference under a key and gives the reference up; -1 on error, also when `value` is NULL. */
int ext_dict_take(PyObject *dict, const char *key, PyObject *value);

#endif
