/* SPDX-License-Identifier: Apache-2.0
 *
 * A C function that multiplies a tensor of any framework in place, without a copy.
 *
 *     cc -shared -fPIC -I FOLDER $(python3-config --includes) native_scale.c -o native_scale.so
 *     python -c "import numpy, native_scale; x = numpy.ones(3); native_scale.scale(x, 2.0); print(x)"
 *
 * FOLDER has dlpack.h, of version 1.3 or newer; torch brings it along, in torch/include/ATen.
 */
#include <Python.h>
#include "dlpack.h"

static PyObject *from_dlpack;      /* bridge.from_dlpack */
static PyObject *share;            /* {"copy": False} */
static DLPackExchangeAPI *table;   /* that of bridge.at.Tensor */

static PyObject *scale(PyObject *module, PyObject *arguments) {
    PyObject *x, *positional, *tensor, *readonly;
    int is_readonly = -1;
    double factor;
    DLTensor view;
    if (!PyArg_ParseTuple(arguments, "Od", &x, &factor)) return NULL;
    positional = PyTuple_Pack(1, x);
    if (positional == NULL) return NULL;
    tensor = PyObject_Call(from_dlpack, positional, share); /* BufferError: it would be a copy */
    Py_DECREF(positional);
    if (tensor == NULL) return NULL;
    readonly = PyObject_GetAttrString(tensor, "readonly"); /* a DLTensor does not say it */
    if (readonly != NULL) is_readonly = PyObject_IsTrue(readonly);
    Py_XDECREF(readonly);
    if (is_readonly > 0) PyErr_SetString(PyExc_ValueError, "scale cannot write read-only memory");
    if (is_readonly != 0) goto failed;
    /* The view is valid while `tensor` exists, and has strides in any case. */
    if (table->dltensor_from_py_object_no_sync(tensor, &view) != 0) goto failed;
    if (view.device.device_type != kDLCPU || view.dtype.code != kDLFloat || view.dtype.bits != 64
            || view.ndim != 1) {
        PyErr_SetString(PyExc_TypeError, "scale takes one dimension of float64 in host memory");
        goto failed;
    }
    double *data = (double *)((char *)view.data + view.byte_offset);
    for (int64_t i = 0; i < view.shape[0]; i++) data[i * view.strides[0]] *= factor;
    Py_DECREF(tensor);
    Py_RETURN_NONE;
failed:
    Py_DECREF(tensor);
    return NULL;
}

static PyMethodDef functions[] = {
    {"scale", scale, METH_VARARGS, "scale(x, factor): multiply a tensor in place."},
    {NULL, NULL, 0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "native_scale", NULL, -1, functions};

PyMODINIT_FUNC PyInit_native_scale(void) {
    PyObject *bridge = NULL, *at = NULL, *cls = NULL, *capsule = NULL;
    bridge = PyImport_ImportModule("bridge");
    if (bridge != NULL) at = PyObject_GetAttrString(bridge, "at");
    if (at != NULL) cls = PyObject_GetAttrString(at, "Tensor");
    if (cls != NULL) capsule = PyObject_GetAttrString(cls, "__dlpack_c_exchange_api__");
    if (capsule != NULL) table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    if (table != NULL) from_dlpack = PyObject_GetAttrString(bridge, "from_dlpack");
    if (from_dlpack != NULL) share = Py_BuildValue("{s:O}", "copy", Py_False);
    Py_XDECREF(bridge);
    Py_XDECREF(at);
    Py_XDECREF(cls);
    Py_XDECREF(capsule); /* the class has it for good */
    PyObject *module = share == NULL ? NULL : PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED /* what changes here is set above, once */
    if (module != NULL) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    return module;
}
