# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""BlobTape: a tape that is bound to the memory of blobs.

It is played as long as each blob has the same tensor, memory, type and sizes (`Operand.holds`).
Memory that changed is bound anew; other sizes need another tape.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from bridge.c10.storage cimport BORROWED, READONLY, begin_of, flags_of
from bridge.c10.tensor_impl cimport (
    FEW_DIMS,
    TensorImpl,
    device_type_of,
    dtype_of,
    has_memory,
    is_contiguous_now,
    is_pod_now,
    is_storage,
    is_undefined,
    nbytes_now,
    offset_of,
    origin_of,
    read_sizes,
    seen,
    storage_flags,
    storage_of,
)
from bridge.caffe2.execution.tape cimport Call, Tape
from bridge.caffe2.tensor.tensor cimport Tensor
from bridge.c10.python_api cimport owned
from bridge.dlpack.abi cimport DL_CPU, DLDataType, DLTensor
from bridge.exchange.torch_api cimport torch_c
from bridge.exchange.torch_description cimport described
from bridge.exchange.torch_export cimport torch_operand

cdef class Layout:
    """The type and the sizes of a tensor, to compare with another tensor."""

    def __cinit__(self):
        self.ndim = -1

    cdef bint set(self, TensorImpl impl):
        """Remember the type and sizes of `impl`; return whether they could be remembered."""
        impl = seen(impl)
        if impl.ndim > MAX_NDIM:
            self.ndim = -1
            return False
        self.dtype = impl.c_dtype
        self.ndim = impl.ndim
        memcpy(self.sizes, impl.c_sizes, impl.ndim * sizeof(int64_t))
        return True

    cdef bint fits(self, TensorImpl impl) noexcept:
        """Return whether `impl` has this type and these sizes."""
        cdef int64_t[FEW_DIMS] room
        cdef int64_t* sizes
        cdef int ndim
        read_sizes(impl, room, &sizes, &ndim)
        return dtype_of(impl) == <PyObject*>self.dtype and ndim == self.ndim \
            and memcmp(sizes, self.sizes, ndim * sizeof(int64_t)) == 0 \
            and (self.elements is None or self.elements == elements_of(impl))


cdef bytes elements_of(TensorImpl impl):
    """Return the elements as bytes; None: they are many, on a device, or another framework's."""
    cdef char* data
    impl = seen(impl)
    if is_undefined(impl) or device_type_of(impl) != DL_CPU or not is_pod_now(impl) \
            or not has_memory(impl) or not is_contiguous_now(impl) \
            or nbytes_now(impl) > MOST_BYTES or storage_flags(impl) & BORROWED:
        return None
    _kept = impl.held(&data, "Operator.Input")
    return data[:nbytes_now(impl)]


cdef bint has_layout(object tensor, Layout layout) except -1:
    """Return whether a torch tensor has this type and these sizes, row-major.

    Kernels rely on it: they have the sizes of the recording, and addresses.
    """
    cdef object _kept
    cdef DLTensor now
    cdef int64_t step = 1
    cdef int i
    if (_kept := described(tensor, &now)) is None:
        return False
    if now.ndim != layout.ndim \
            or memcmp(&now.dtype, &layout.dtype.c_dlpack, sizeof(DLDataType)) != 0:
        return False
    for i in range(now.ndim - 1, -1, -1):
        if now.shape[i] != layout.sizes[i] or (now.shape[i] > 1 and now.strides[i] != step):
            return False
        step *= max(now.shape[i], 1)
    return True


cdef class Operand:
    """A tensor of a blob, as it was when a tape was bound to it."""

    cdef bint holds(self, TensorImpl impl) except -1:
        """Return whether `impl` is that tensor, with the same memory, type and sizes."""
        cdef Storage storage = self.storage
        if impl is not self.impl or not is_storage(impl, storage) \
                or begin_of(storage) != self.data or offset_of(impl) != self.offset \
                or not self.layout.fits(impl) or (self.written and flags_of(storage) & READONLY):
            return False
        if flags_of(storage) & BORROWED:
            storage.check()
        return True

    cdef object rebind(self, TensorImpl impl):
        """Return a torch tensor over the memory of `impl`; None if its type or sizes differ."""
        cdef object tensor = torch_operand(impl)
        if tensor is origin_of(impl):
            # Another one, since whoever has the original may change its sizes.
            if torch_c.data == NULL:
                tensor = tensor.detach()
            else:   # which takes less time
                tensor = owned(torch_c.data(<PyObject*>tensor, torch_c.data_closure))
        if not has_layout(tensor, self.layout):
            return None                 # another thread gave it other sizes in the meantime
        self.impl = impl
        self.storage = storage_of(impl)
        self.data = begin_of(self.storage)
        self.offset = offset_of(impl)
        return tensor


cdef class BlobTape(Tape):
    """A tape, its operands and the values by slot."""


cdef BlobTape bound_tape(Tape tape, list tensors, list layouts, Py_ssize_t inputs):
    """Return a tape that is bound to caffe2.Tensors; None: another thread has changed one.

    tensors: of the inputs, then of the outputs that the calls write, None for other outputs.
    layouts: their types and sizes.
    """
    cdef BlobTape found = BlobTape.__new__(BlobTape)
    cdef Operand operand
    cdef Tensor tensor
    cdef Call call
    cdef Py_ssize_t i
    # Operators of one definition share the recording; bound arguments are their own.
    found.calls = [call.copy() for call in tape.calls]
    found.slots, found.results = tape.slots, tape.results
    found.operands = []
    found.values = [None] * tape.slots
    for i in range(len(tensors)):
        tensor = tensors[i]
        operand = None
        if tensor is not None:
            operand = Operand.__new__(Operand)
            operand.layout = <Layout>layouts[i]
            operand.written = i >= inputs
            found.values[i] = operand.rebind(tensor.impl)
            if found.values[i] is None:
                return None
        found.operands.append(operand)
    found.bind(found.values)
    return found
