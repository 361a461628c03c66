# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyTypeObject
from libc.stdint cimport uintptr_t

from bridge.dlpack.abi cimport DLPackExchangeAPI
from bridge.c10.python_api cimport Py_TYPE, published_pointer
from bridge.c10.slots cimport c_getter, c_method

# What the bridge calls of torch without Python's method lookup. All fields are NULL until torch
# is loaded; those of another thread's making are there once `torch_type` is not NULL.
cdef struct TorchC:
    PyTypeObject* tensor_type
    PyTypeObject* parameter_type
    DLPackExchangeAPI* dlpack       # NULL: before torch 2.10, or is_neg is
    c_method is_neg                 # NULL: it, is_conj or requires_grad is not in C
    c_method is_conj
    c_getter requires_grad
    void* requires_grad_closure
    c_getter data
    void* data_closure
    c_method untyped_storage        # NULL, as the next: not in C
    c_method resizable              # of torch.UntypedStorage
    c_method address                # of torch.UntypedStorage

cdef TorchC torch_c
cdef inline PyTypeObject* torch_type() noexcept:
    """Return the class torch.Tensor; NULL: torch is not loaded."""
    return <PyTypeObject*>published_pointer(<void**>&torch_c.tensor_type)

cdef extern from "Python.h":
    int PyType_IsSubtype(PyTypeObject*, PyTypeObject*)

cdef inline bint is_tensor(object x) noexcept:
    """Return whether it is a torch.Tensor; False if torch is not loaded.

    Takes no reference to the class, which threads share, and skips its metaclass, for which
    isinstance looks.
    """
    cdef PyTypeObject* cls = torch_type()
    return cls != NULL and (Py_TYPE(x) == cls or PyType_IsSubtype(Py_TYPE(x), cls) != 0)

cdef object torch                   # the module; None until it is loaded
cdef bint torch_loaded() except -1
cdef int load_torch() except -1
cpdef bint is_torch_tensor(object x)
cpdef bint is_read_only_class(object cls) except -1
cdef bint is_plain(object x) noexcept
cpdef bint has_tangent(object tensor) except -1
cdef object without_modes()
cdef object untyped_storage(object tensor)
cdef bint is_resizable(object untyped) except -1
cdef uintptr_t address_of(object untyped) except? 1
