/* Type Run: a cell that is set up. Thin: parse, pin buffers, release the GIL around one sample at a time, convert.
 *
 * A Run belongs to the thread that uses it; two threads in one Run, or writing one buffer, are the caller's error. */
#include "ext.h"

#include <string.h>

#include "base/ledger.h"
#include "registry.h"

typedef struct run_object {
    PyObject_HEAD cpb_session *session; /* NULL before setup and after close */
} run_object;

static module_state *
state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

static cpb_session *
open_session(PyObject *self)
{
    cpb_session *session = ((run_object *)self)->session;
    if (session == NULL)
        PyErr_SetString(PyExc_ValueError, "the Run is closed");
    return session;
}

static int
run_init(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"cell_id", NULL};
    run_object *run = (run_object *)self;
    const char *id;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s:Run", names, &id))
        return -1;
    if (run->session != NULL) {
        PyErr_SetString(PyExc_ValueError, "the Run is already set up");
        return -1;
    }
    const cpb_case *cell = cpb_registry_find(id);
    if (cell == NULL)
        cell = cpb_plugins_find(&state_of(self)->plugins, id);
    if (cell == NULL) {
        PyErr_Format(PyExc_LookupError, "there is no cell '%s'; cases() names them", id);
        return -1;
    }
    cpb_error error = {0};
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = cpb_session_create(&run->session, cell, &error);
    Py_END_ALLOW_THREADS
    if (status != CPB_OK) {
        ext_raise(state_of(self), &error);
        return -1;
    }
    return 0;
}

static void
close_run(run_object *run)
{
    cpb_session *session = run->session;
    run->session = NULL;
    if (session == NULL)
        return;
    Py_BEGIN_ALLOW_THREADS
    cpb_session_destroy(session);
    Py_END_ALLOW_THREADS
}

static void
run_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    close_run((run_object *)self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *
run_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    close_run((run_object *)self);
    Py_RETURN_NONE;
}

static PyObject *
run_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (open_session(self) == NULL)
        return NULL;
    return Py_NewRef(self);
}

static PyObject *
run_exit(PyObject *self, PyObject *arguments)
{
    (void)arguments;
    close_run((run_object *)self);
    Py_RETURN_FALSE;
}

static PyObject *
run_calibrate(PyObject *self, PyObject *argument)
{
    cpb_session *session = open_session(self);
    if (session == NULL)
        return NULL;
    unsigned long long target = PyLong_AsUnsignedLongLong(argument);
    if (PyErr_Occurred())
        return NULL;
    cpb_error error = {0};
    uint64_t ops = 0;
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = cpb_session_calibrate(session, target, &ops, &error);
    Py_END_ALLOW_THREADS
    if (status != CPB_OK)
        return ext_raise(state_of(self), &error);
    return PyLong_FromUnsignedLongLong(ops);
}

/* A writable, contiguous, one-dimensional buffer of uint64: array('Q'), a numpy uint64 array or a memoryview of one. */
static int
pin(PyObject *object, Py_buffer *view, const char *name)
{
    if (PyObject_GetBuffer(object, view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0)
        return -1;
    const char *format = view->format != NULL ? view->format : "B";
    int fits = view->ndim == 1 && view->itemsize == 8 && (format[0] == 'Q' || format[0] == 'L') && format[1] == '\0';
    if (!fits) {
        PyErr_Format(PyExc_TypeError, "%s must be a one-dimensional buffer of uint64, such as array('Q')", name);
        PyBuffer_Release(view);
        return -1;
    }
    return 0;
}

/* Fills the buffers. The GIL is released a sample at a time, so that Ctrl-C is seen between samples. Answers 0 or -1.
 */
static int
take_samples(PyObject *self, uint64_t ops, uint64_t *ns, uint64_t *flags, Py_ssize_t count)
{
    cpb_session *session = ((run_object *)self)->session;
    for (Py_ssize_t i = 0; i < count; i++) {
        cpb_error error = {0};
        cpb_sample sample = {0};
        int status;
        Py_BEGIN_ALLOW_THREADS
        status = cpb_session_sample(session, ops, &sample, &error);
        Py_END_ALLOW_THREADS
        if (status != CPB_OK) {
            ext_raise(state_of(self), &error);
            return -1;
        }
        ns[i] = sample.ns;
        flags[i] = sample.flags;
        if (PyErr_CheckSignals() < 0)
            return -1;
    }
    return 0;
}

static PyObject *
run_measure(PyObject *self, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"ops", "samples", "flags", NULL};
    unsigned long long ops;
    PyObject *samples, *flags, *result = NULL;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "KOO:measure", names, &ops, &samples, &flags))
        return NULL;
    if (open_session(self) == NULL)
        return NULL;
    Py_buffer ns_view, flags_view;
    if (pin(samples, &ns_view, "samples") < 0)
        return NULL;
    if (pin(flags, &flags_view, "flags") < 0)
        goto release_ns;
    if (ns_view.len != flags_view.len)
        PyErr_SetString(PyExc_ValueError, "samples and flags must have the same length");
    else if (take_samples(self, ops, ns_view.buf, flags_view.buf, ns_view.len / 8) == 0)
        result = PyLong_FromSsize_t(ns_view.len / 8);
    PyBuffer_Release(&flags_view);
release_ns:
    PyBuffer_Release(&ns_view);
    return result;
}

static PyObject *
run_verify(PyObject *self, PyObject *unused)
{
    (void)unused;
    cpb_session *session = open_session(self);
    if (session == NULL)
        return NULL;
    cpb_error error = {0};
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = cpb_session_verify(session, &error);
    Py_END_ALLOW_THREADS
    if (status != CPB_OK)
        return ext_raise(state_of(self), &error);
    Py_RETURN_NONE;
}

static PyObject *
run_counters(PyObject *self, PyObject *unused)
{
    (void)unused;
    cpb_session *session = open_session(self);
    PyObject *dict = session != NULL ? PyDict_New() : NULL;
    if (dict == NULL || !cpb_ledger_counting())
        return dict;
    uint64_t counts[CPB_COUNTER_COUNT];
    cpb_session_counters(session, counts);
    for (int i = 0; dict != NULL && i < CPB_COUNTER_COUNT; i++) {
        if (ext_dict_take(dict, cpb_counter_key((cpb_counter)i), PyLong_FromUnsignedLongLong(counts[i])) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

/* A whole count is an int, any other a float. */
static PyObject *
per_op(const cpb_case *cell, int64_t count, uint64_t ops)
{
    double value = cpb_ledger_per_op(cell, count, ops);
    if (value == (double)(long long)value)
        return PyLong_FromLongLong((long long)value);
    return PyFloat_FromDouble(value);
}

static PyObject *
run_ledger(PyObject *self, PyObject *argument)
{
    cpb_session *session = open_session(self);
    if (session == NULL)
        return NULL;
    if (!cpb_ledger_counting()) {
        PyErr_SetString(PyExc_ValueError, "this module does not count; use capybench._ledger");
        return NULL;
    }
    unsigned long long ops = PyLong_AsUnsignedLongLong(argument);
    if (PyErr_Occurred())
        return NULL;
    cpb_error error = {0};
    int64_t counts[CPB_COUNTER_COUNT];
    int status;
    Py_BEGIN_ALLOW_THREADS
    status = cpb_session_ledger(session, ops, counts, &error);
    Py_END_ALLOW_THREADS
    if (status != CPB_OK)
        return ext_raise(state_of(self), &error);
    PyObject *dict = PyDict_New();
    for (int i = 0; dict != NULL && i < CPB_COUNTER_COUNT; i++) {
        if (ext_dict_take(dict, cpb_counter_key((cpb_counter)i), per_op(cpb_session_cell(session), counts[i], ops)) < 0)
            Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *
run_usage(PyObject *self, PyObject *unused)
{
    (void)unused;
    cpb_session *session = open_session(self);
    if (session == NULL)
        return NULL;
    cpb_usage usage;
    cpb_session_usage(session, &usage);
    return Py_BuildValue(
        "{s:K,s:K,s:K,s:K,s:K,s:K,s:K}", "samples", (unsigned long long)usage.samples, "thread_cpu_ns",
        (unsigned long long)usage.thread_cpu_ns, "process_cpu_ns", (unsigned long long)usage.process_cpu_ns,
        "voluntary_switches", (unsigned long long)usage.voluntary_switches, "involuntary_switches",
        (unsigned long long)usage.involuntary_switches, "minor_faults", (unsigned long long)usage.minor_faults,
        "major_faults", (unsigned long long)usage.major_faults);
}

static PyObject *
run_facts(PyObject *self, PyObject *unused)
{
    (void)unused;
    cpb_session *session = open_session(self);
    PyObject *dict = session != NULL ? PyDict_New() : NULL;
    const char *key, *value;
    for (size_t i = 0; dict != NULL && cpb_session_fact(session, i, &key, &value); i++) {
        PyObject *name = ext_text(key), *text = ext_text(value);
        if (name == NULL || text == NULL || PyDict_SetItem(dict, name, text) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(text);
    }
    return dict;
}

static PyMethodDef run_methods[] = {
    {"calibrate", run_calibrate, METH_O,
     "calibrate(target_ns) -> int\n\nThe number of ops for one sample of about target_ns nanoseconds, a positive "
     "multiple of the\n"
     "cell's step. Raises CoreError when the cell fails."},
    {"measure", (PyCFunction)(void (*)(void))run_measure, METH_VARARGS | METH_KEYWORDS,
     "measure(ops, samples, flags) -> int\n\nTakes len(samples) samples of `ops` ops each. `samples` and `flags` are "
     "writable\n"
     "one-dimensional uint64 buffers of one length, such as array('Q'); samples[i] receives whole nanoseconds, "
     "flags[i] bits:\n"
     "1 single-threaded before, 2 single-threaded after, 4 clock stepped back, 8 clock did not advance. The GIL is "
     "released\n"
     "around each sample; KeyboardInterrupt is raised between samples. Returns the number of samples."},
    {"verify", run_verify, METH_NOARGS,
     "verify()\n\nProves that all ops since set-up were done. Raises CoreError with status 'failed' and the reason."},
    {"counters", run_counters, METH_NOARGS,
     "counters() -> dict[str, int]\n\nTotals of all counters since set-up; empty in the measured build, which counts "
     "nothing."},
    {"ledger", run_ledger, METH_O,
     "ledger(ops) -> dict[str, int | float]\n\nEvents per op, (N(2 ops) - N(ops)) / ops after a warm-up; ints when "
     "exact. Only in\n"
     "capybench._ledger, else ValueError."},
    {"usage", run_usage, METH_NOARGS,
     "usage() -> dict[str, int]\n\nSums over all samples: CPU times in ns, context switches, page faults."},
    {"facts", run_facts, METH_NOARGS, "facts() -> dict[str, str]\n\nWhat the case recorded about its run."},
    {"close", run_close, METH_NOARGS, "close()\n\nTears the cell down. May be called again."},
    {"__enter__", run_enter, METH_NOARGS, "Returns the Run."},
    {"__exit__", run_exit, METH_VARARGS, "Closes the Run."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_doc,
     "Run(cell_id)\n\nA cell that is set up to be measured in this process. Raises LookupError for an unknown id,\n"
     "CoreError with status 'unavailable' when the cell cannot run here, and with status 'invalid' for a\n"
     "single-threaded cell in a process that has ever created a thread. Used by one thread at a time."},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, run_init},
    {Py_tp_dealloc, run_dealloc},
    {Py_tp_methods, run_methods},
    {0, NULL},
};

static PyType_Spec run_spec = {
    .name = CPB_MODULE_NAME ".Run",
    .basicsize = sizeof(run_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = run_slots,
};

PyObject *
ext_make_run_type(PyObject *module)
{
    return PyType_FromModuleAndSpec(module, &run_spec, NULL);
}
