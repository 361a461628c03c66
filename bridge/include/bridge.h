/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of any library in C and C++: take one, check it, give one back. No library to link with.
 *
 *     #include <bridge.h>                      the folder is python -c "import bridge;
 *                                              print(bridge.get_include())"
 *     if (bridge_import() < 0) return NULL;    in the module's init; else the first call does it
 *
 *     static PyObject *scale(PyObject *module, PyObject *x) {
 *         bridge_tensor t;
 *         if (bridge_take(x, &t, BRIDGE_FLOAT64, 1, BRIDGE_WRITABLE) < 0) return NULL;
 *         for (int64_t i = 0; i < t.shape[0]; i++) ((double *)t.data)[i * t.strides[0]] *= 2;
 *         bridge_release(&t);
 *         Py_RETURN_NONE;
 *     }
 *
 * Each function needs an attached thread state (the GIL, where there is one). Those that fail set a
 * Python exception. Between bridge_take and bridge_release the elements may be read and written
 * without it, as long as no other thread writes them, or gives the memory back by the means of its
 * own library (torch's resize_ of a storage).
 */
#ifndef BRIDGE_H
#define BRIDGE_H

#include <Python.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types: DLPack's code and the bits of an element. */
#define BRIDGE_TYPE(code, bits) (((code) << 8) | (bits))
#define BRIDGE_INT8 BRIDGE_TYPE(0, 8)
#define BRIDGE_INT16 BRIDGE_TYPE(0, 16)
#define BRIDGE_INT32 BRIDGE_TYPE(0, 32)
#define BRIDGE_INT64 BRIDGE_TYPE(0, 64)
#define BRIDGE_UINT8 BRIDGE_TYPE(1, 8)
#define BRIDGE_UINT16 BRIDGE_TYPE(1, 16)
#define BRIDGE_UINT32 BRIDGE_TYPE(1, 32)
#define BRIDGE_UINT64 BRIDGE_TYPE(1, 64)
#define BRIDGE_FLOAT16 BRIDGE_TYPE(2, 16)
#define BRIDGE_FLOAT32 BRIDGE_TYPE(2, 32)
#define BRIDGE_FLOAT64 BRIDGE_TYPE(2, 64)
#define BRIDGE_BFLOAT16 BRIDGE_TYPE(4, 16)
#define BRIDGE_COMPLEX64 BRIDGE_TYPE(5, 64)
#define BRIDGE_COMPLEX128 BRIDGE_TYPE(5, 128)
#define BRIDGE_BOOL BRIDGE_TYPE(6, 8)
#define BRIDGE_ANY_TYPE 0    /* of bridge_take */
#define BRIDGE_ANY_NDIM (-1) /* of bridge_take */

/* Flags of bridge_take and bridge_wrap. */
enum {
    BRIDGE_WRITABLE = 1,   /* the elements will be written; read-only memory is refused */
    BRIDGE_CONTIGUOUS = 2, /* row-major without gaps; other strides are refused */
    BRIDGE_COPY = 4,       /* a copy is allowed where the memory cannot be shared as it is asked for */
    BRIDGE_ANY_DEVICE = 8, /* the memory may be on a device; else it is refused */
    BRIDGE_READONLY = 16   /* of bridge_wrap: nobody may write the memory */
};

/* A tensor that was taken. Valid until bridge_release, whatever happens to the object. */
typedef struct {
    void *data;             /* the first element; on a device an address there */
    const int64_t *shape;   /* ndim sizes, in elements */
    const int64_t *strides; /* ndim strides, in elements; they may be 0 or negative */
    int64_t numel;          /* the number of elements */
    int32_t ndim;           /* the number of dimensions */
    int32_t type;           /* BRIDGE_FLOAT32, ..., or another BRIDGE_TYPE */
    int32_t itemsize;       /* bytes of an element */
    int32_t device_type;    /* as in DLPack: 1 is the CPU, 2 CUDA */
    int32_t device_id;
    int32_t readonly;       /* 1: it must not be written */
    PyObject *owner;        /* these two keep it alive; not for you */
    PyObject *memory;
} bridge_tensor;

/* Called once with its context when the memory is no longer needed, in any thread. */
typedef void (*bridge_deleter)(void *context);

/* The functions of the package; call those below instead. New ones are added at the end. */
typedef struct {
    uint32_t version; /* of what is here */
    uint32_t nbytes;  /* of this structure */
    int (*take)(PyObject *x, bridge_tensor *out, int type, int ndim, int flags);
    PyObject *(*make)(int type, int ndim, const int64_t *shape, bridge_tensor *out);
    PyObject *(*wrap)(void *data, int type, int ndim, const int64_t *shape, const int64_t *strides,
                      int flags, bridge_deleter deleter, void *context);
    PyObject *(*convert)(PyObject *x, const char *library);
} bridge_api;

#define BRIDGE_API_VERSION 1
#define BRIDGE_API_CAPSULE "bridge.c_api"

static const bridge_api *bridge_functions;

/* Find the package; return 0, or -1 with an ImportError. */
static inline int bridge_import(void) {
    PyObject *module, *capsule;
    const bridge_api *found = NULL;
    if (bridge_functions != NULL) return 0;
    module = PyImport_ImportModule("bridge.c_api");
    if (module == NULL) return -1;
    capsule = PyObject_GetAttrString(module, "C_API");
    Py_DECREF(module);
    if (capsule == NULL) return -1;
    found = (const bridge_api *)PyCapsule_GetPointer(capsule, BRIDGE_API_CAPSULE);
    Py_DECREF(capsule);
    if (found == NULL) return -1;
    if (found->version != BRIDGE_API_VERSION || found->nbytes < sizeof(bridge_api)) {
        PyErr_SetString(PyExc_ImportError,
                        "the installed bridge is not of the version of the bridge.h that this "
                        "module was compiled with");
        return -1;
    }
    bridge_functions = found;
    return 0;
}

/* Return 1 if a function can be called with this argument, else 0 with an exception: that of the
 * caller, if it passes on the NULL of a call that failed. */
static inline int bridge_ready(const void *argument) {
    if (bridge_functions == NULL && bridge_import() < 0) return 0;
    if (argument != NULL) return 1;
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_SystemError, "a function of bridge.h was given NULL");
    return 0;
}

/* Take the tensor `x`, of any library, on its own memory; return 0, or -1.
 *
 * type: BRIDGE_FLOAT32, ..., or BRIDGE_ANY_TYPE. ndim: the number of dimensions, or
 * BRIDGE_ANY_NDIM. Without BRIDGE_COPY nothing is copied.
 * TypeError: not a tensor, or other elements. ValueError: another number of dimensions,
 * BRIDGE_WRITABLE with BRIDGE_COPY, or an unknown type, number or flag. BufferError: it cannot be shared, is read-only, not contiguous
 * or on a device, and the flags do not allow that.
 */
static inline int bridge_take(PyObject *x, bridge_tensor *out, int type, int ndim, int flags) {
    if (!bridge_ready(out)) return -1;
    out->owner = out->memory = NULL;
    return bridge_ready(x) ? bridge_functions->take(x, out, type, ndim, flags) : -1;
}

/* Let go of a tensor that bridge_take or bridge_new filled in, whether it succeeded or failed. */
static inline void bridge_release(bridge_tensor *t) {
    PyObject *owner = t->owner, *memory = t->memory;
    t->owner = t->memory = NULL;
    t->data = NULL;
    Py_XDECREF(owner);
    Py_XDECREF(memory);
}

/* Return a new bridge.at.Tensor in host memory, row-major and not initialised; NULL: it failed.
 *
 * out: NULL, or where to describe it for writing; bridge_release it as well.
 */
static inline PyObject *bridge_new(int type, int ndim, const int64_t *shape, bridge_tensor *out) {
    if (out != NULL) out->owner = out->memory = NULL;
    return bridge_ready("") ? bridge_functions->make(type, ndim, shape, out) : NULL;
}

/* Return a bridge.at.Tensor on host memory of yours; NULL: it failed, and the memory is yours.
 *
 * strides: in elements, none negative; NULL: row-major. flags: 0 or BRIDGE_READONLY. deleter: NULL,
 * or what frees the memory.
 */
static inline PyObject *bridge_wrap(void *data, int type, int ndim, const int64_t *shape,
                                    const int64_t *strides, int flags, bridge_deleter deleter,
                                    void *context) {
    if (!bridge_ready("")) return NULL;
    return bridge_functions->wrap(data, type, ndim, shape, strides, flags, deleter, context);
}

/* Return `x` as a tensor of a library, "torch", "numpy", "jax", ...: bridge.convert(x, library). */
static inline PyObject *bridge_convert(PyObject *x, const char *library) {
    return bridge_ready(x) && bridge_ready(library) ? bridge_functions->convert(x, library) : NULL;
}

#ifdef __cplusplus
}
#endif
#endif /* BRIDGE_H */
