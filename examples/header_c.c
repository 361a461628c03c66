/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions in plain C that take and return tensors of any library, by bridge.h.
 *
 *     cc -shared -fPIC $(python3-config --includes) \
 *         -I $(python3 -c "import bridge; print(bridge.get_include())") header_c.c -o header_c.so
 *     python3 -c "import torch, header_c; x = torch.ones(3); header_c.scale(x, 2.0); print(x)"
 */
#include <bridge.h>
#include <stdlib.h>

/* scale(x, factor): multiply one dimension of float64 in place, whatever its strides are. */
static PyObject *scale(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *x;
    double factor;
    bridge_tensor t;
    if (!PyArg_ParseTuple(arguments, "Od", &x, &factor)) return NULL;
    if (bridge_take(x, &t, BRIDGE_FLOAT64, 1, BRIDGE_WRITABLE) < 0) return NULL;
    Py_BEGIN_ALLOW_THREADS
    for (int64_t i = 0; i < t.shape[0]; i++) ((double *)t.data)[i * t.strides[0]] *= factor;
    Py_END_ALLOW_THREADS
    bridge_release(&t);
    Py_RETURN_NONE;
}

/* row_sums(x): the sums of the rows of a matrix of float32, as a new tensor. */
static PyObject *row_sums(PyObject *module, PyObject *x) {
    (void)module;
    bridge_tensor t, out;
    PyObject *result;
    const float *in;
    if (bridge_take(x, &t, BRIDGE_FLOAT32, 2, BRIDGE_CONTIGUOUS | BRIDGE_COPY) < 0) return NULL;
    in = (const float *)t.data;
    result = bridge_new(BRIDGE_FLOAT32, 1, t.shape, &out);
    if (result != NULL) {
        for (int64_t i = 0; i < t.shape[0]; i++) {
            float sum = 0;
            for (int64_t j = 0; j < t.shape[1]; j++) sum += *in++;
            ((float *)out.data)[i] = sum;
        }
        bridge_release(&out);
    }
    bridge_release(&t);
    return result;
}

static int freed; /* how often memory of `squares` was freed */

static void free_memory(void *context) {
    free(context);
    freed++;
}

/* squares(n, library): 0, 1, 4, ... of int32 in memory from malloc, as a library's tensor. */
static PyObject *squares(PyObject *module, PyObject *arguments) {
    (void)module;
    Py_ssize_t n;
    const char *library;
    int64_t shape[1];
    int32_t *data;
    PyObject *tensor, *result;
    if (!PyArg_ParseTuple(arguments, "ns", &n, &library)) return NULL;
    data = (int32_t *)malloc((n > 0 ? n : 1) * sizeof(int32_t));
    if (data == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) data[i] = (int32_t)(i * i);
    shape[0] = n;
    tensor = bridge_wrap(data, BRIDGE_INT32, 1, shape, NULL, BRIDGE_READONLY, free_memory, data);
    if (tensor == NULL) {
        free(data);
        return NULL;
    }
    result = bridge_convert(tensor, library);
    Py_DECREF(tensor);
    return result;
}

/* describe(x): what bridge_take says of any tensor. */
static PyObject *describe(PyObject *module, PyObject *x) {
    (void)module;
    bridge_tensor t;
    PyObject *result;
    if (bridge_take(x, &t, BRIDGE_ANY_TYPE, BRIDGE_ANY_NDIM, BRIDGE_ANY_DEVICE) < 0) return NULL;
    result = Py_BuildValue("(nLiiiii)", (Py_ssize_t)t.data, (long long)t.numel, t.ndim, t.type,
                           t.itemsize, t.device_type, t.readonly);
    bridge_release(&t);
    return result;
}

static PyObject *times_freed(PyObject *module, PyObject *nothing) {
    (void)module;
    (void)nothing;
    return PyLong_FromLong(freed);
}

static PyMethodDef functions[] = {
    {"scale", scale, METH_VARARGS, "scale(x, factor): multiply a tensor in place."},
    {"row_sums", row_sums, METH_O, "row_sums(x): return the sums of the rows of a matrix."},
    {"squares", squares, METH_VARARGS, "squares(n, library): return the first squares."},
    {"describe", describe, METH_O, "describe(x): return what a tensor is."},
    {"times_freed", times_freed, METH_NOARGS, "times_freed(): how often squares were freed."},
    {NULL, NULL, 0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "header_c", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_header_c(void) {
    if (bridge_import() < 0) return NULL;
    return PyModule_Create(&definition);
}
