#include "ext.h"

#include <string.h>

#include "base/status.h"

PyObject *
ext_text(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* CoreError(message) with an attribute `status`, the short name of the status. */
PyObject *
ext_raise(const module_state *state, const cpb_error *error)
{
    if (error->status == CPB_E_NO_MEMORY)
        return PyErr_NoMemory();
    if (error->status == CPB_E_ARGUMENT) {
        PyErr_SetString(PyExc_ValueError, error->message);
        return NULL;
    }
    PyObject *message = ext_text(error->message);
    if (message == NULL)
        return NULL;
    PyObject *exception = PyObject_CallFunctionObjArgs(state->core_error, message, NULL);
    Py_DECREF(message);
    if (exception == NULL)
        return NULL;
    PyObject *status = PyUnicode_FromString(cpb_status_name(error->status));
    if (status != NULL && PyObject_SetAttrString(exception, "status", status) == 0)
        PyErr_SetObject(state->core_error, exception);
    Py_XDECREF(status);
    Py_DECREF(exception);
    return NULL;
}
