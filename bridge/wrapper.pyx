# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""What both wrappers have in common: a TensorImpl, and the ways out of the bridge."""

cimport cython
from libc.stdint cimport int64_t, uintptr_t

from bridge.c10.array_ref cimport array_ref_of
from bridge.c10.copy cimport asked_copy
from bridge.c10.observe cimport copying, observed, outermost, shared, unlikely, watched
from bridge.c10.pinning cimport pinned_data
from bridge.c10.slots cimport own_methods
from bridge.c10.storage cimport READONLY, Storage
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, undefined_impl
from bridge.dlpack.abi cimport (
    DL_CPU,
    DL_CUDA,
    DL_CUDA_HOST,
    DL_CUDA_MANAGED,
    DLPACK_IS_COPIED,
    DLPACK_MAJOR,
    DLPACK_MINOR,
    has_streams,
)
from bridge.dlpack.capsule cimport make
from bridge.exchange.export cimport export_legacy, export_versioned, fill_buffer, release_buffer
from bridge.exchange.ingest cimport tristate
from bridge.exchange.numpy cimport array_out
from bridge.exchange.devices cimport on_host
from bridge.exchange.torch cimport for_asker, tensor_out, torch_asks

from bridge.c10.device import Device as DeviceClass
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.c10.observe import ASKED as _ASKED
from bridge.exchange.ingest import set_wrapper
from bridge.exchange.transfer import to_device
from bridge.pickling import reduced


@cython.freelist(128)
cdef class Wrapper:
    """The common base of `bridge.at.Tensor` and `bridge.caffe2.Tensor`; not made by itself."""

    def __cinit__(self):
        self.impl = undefined_impl

    def defined(self):
        """Whether this is a tensor at all."""
        return self.impl.storage is not None

    def unsafeGetTensorImpl(self):
        """The TensorImpl that this holds, shared."""
        return self.impl

    def is_same(self, other):
        """Whether `other`, of either kind of wrapper, holds the same TensorImpl."""
        if not isinstance(other, Wrapper):
            raise EnforceTypeError(
                f"A bridge tensor is compared with another, not with {type(other).__name__}.", f"{type(self).__name__}.is_same")
        return self.impl is (<Wrapper>other).impl

    # Metadata.

    def sizes(self):
        """Return the sizes as an ArrayRef: a snapshot, which later changes leave as it is."""
        cdef TensorImpl impl = self.impl
        if impl.sizes_ref is not None:
            return impl.sizes_ref
        impl.require_defined("Tensor.sizes")
        return impl.sizes_view()

    def strides(self):
        """Return the strides, in elements, as an ArrayRef: a snapshot."""
        self.impl.require_defined("Tensor.strides")
        return array_ref_of(self.impl.c_strides(), self.impl.ndim)

    @property
    def shape(self):
        """The sizes as a tuple of ints."""
        cdef TensorImpl impl = self.impl
        impl.require_defined("Tensor.shape")
        return tuple([impl.c_sizes[i] for i in range(impl.ndim)])

    def numel(self):
        """Return the number of elements."""
        self.impl.require_defined("Tensor.numel")
        return self.impl.c_numel

    def dtype(self):
        """Return the TypeMeta of the elements; an undefined one, which is false, if not set."""
        return self.impl.c_dtype

    def itemsize(self):
        """Return the size of an element in bytes; 0 if the element type is not set."""
        return self.impl.c_dtype.itemsize

    def nbytes(self):
        """Return the size of all elements in bytes: ``numel() * itemsize()``."""
        self.impl.require_defined("Tensor.nbytes")
        return self.impl.c_numel * self.impl.c_dtype.itemsize

    def storage(self):
        """Return the Storage, shared."""
        self.impl.require_defined("Tensor.storage")
        return self.impl.storage

    # Exchange.

    def to_torch(self, *, copy=None, writable=False):
        """A ``torch.Tensor`` of the same memory; the same object if torch's came in.

        Read-only memory and negative strides, which torch cannot express, are
        copied under ``copy=None``; `writable` shares read-only memory all the same.
        CUDA memory that the bridge allocated is torch's own: use on a second stream is told
        by the tensor's ``record_stream``, and `resize_` of it ends this tensor's memory.
        Raises BufferError: non-POD or unallocated, of a type that torch lacks, or
        ``copy=False`` where a copy would be needed.
        """
        if unlikely(observed) and outermost():
            return _watched(self, "to_torch", "torch.Tensor", Wrapper.to_torch,
                            {"copy": copy, "writable": writable})
        if copy is None and writable is False:
            return tensor_out(self.impl)
        return tensor_out(self.impl, tristate(copy), bool(writable))

    def numpy(self):
        """A ``numpy.ndarray`` of the same memory, not writable where the memory is not.

        Raises BufferError: not in host memory, non-POD, unallocated, of a type or a
        number of dimensions that NumPy lacks.
        """
        if unlikely(observed) and outermost():
            return _watched(self, "numpy", "numpy.ndarray", Wrapper.numpy, {})
        return array_out(self.impl, "numpy")

    def __array__(self, dtype=None, copy=None):
        """A ``numpy.ndarray``, as NumPy 2 asks for it: shared, unless `dtype` (NumPy's) is
        another type or `copy` is True.

        Raises BufferError as `numpy`; ValueError: ``copy=False`` where `dtype` takes a copy.
        """
        if unlikely(observed) and outermost():
            return _watched(self, "__array__", "numpy.ndarray", Wrapper.__array__,
                            {"dtype": dtype, "copy": copy})
        tristate(copy)
        array = array_out(self.impl, "__array__")
        if dtype is not None and dtype != array.dtype:
            if copy is False:
                raise ValueError(f"{array.dtype} becomes {dtype} by a copy only.")
            copying(array.nbytes, f"{array.dtype} becomes {dtype}")
            return array.astype(dtype)
        if copy is not True:
            return array
        copying(array.nbytes, _ASKED)
        return array.copy()

    def __dlpack_device__(self):
        """DLPack's (device type, index) of the memory."""
        cdef Storage storage = self.impl.storage
        if storage is None:
            self.impl.require_defined("__dlpack_device__")
        return storage.device_type, storage.device_index if storage.device_index > 0 else 0

    def __dlpack__(self, *, dl_device=None, copy=None, max_version=None, stream=None):
        """A DLPack capsule of the memory, as the Python array API standard (2024.12) has it.

        Versioned if `max_version` is (1, 0) or later, else legacy. `copy`: True
        always, False never, None where needed. `dl_device`: copy there if it is
        elsewhere. `stream`: the consumer's CUDA stream, which waits for ours; -1 for
        none of that.

        Shared, unless one of these says otherwise; torch.from_dlpack, which has no read-only
        tensors and no negative strides, gets a copy of such. It knows page-locked memory as the
        CPU's only, and gets it so.

        Raises BufferError: it cannot be exchanged so. ValueError, TypeError: an
        argument is none of the standard's.
        """
        cdef TensorImpl impl = self.impl
        cdef int flags = 0
        cdef bint versioned = False
        global _known_version
        if unlikely(observed) and outermost():
            return _watched(
                self, "__dlpack__", "DLPack capsule", Wrapper.__dlpack__,
                {"stream": stream, "max_version": max_version, "dl_device": dl_device,
                 "copy": copy})
        if copy is not None:
            tristate(copy)
        if max_version is _known_version:
            versioned = True
        elif max_version is not None:
            if not isinstance(max_version, tuple) or len(<tuple>max_version) != 2:
                raise TypeError(f"max_version is a pair such as (1, 0), not {max_version!r}.")
            # (compared in Python: it may be of any size, and of any kind)
            versioned = (<tuple>max_version)[0] >= DLPACK_MAJOR
            if versioned:
                _known_version = max_version
        if dl_device is not None:
            impl = _on_device(impl, dl_device, copy)
        if impl.storage is None:
            impl.require_defined("__dlpack__")
        if copy is True and impl.storage.ctx is self.impl.storage.ctx:
            impl = asked_copy(impl, "__dlpack__")
        if impl is self.impl and (impl.storage.flags & READONLY or not impl.flags & CONTIGUOUS):
            impl = for_asker(impl, copy)
        if impl.storage.device_type == DL_CUDA_HOST and dl_device is None and torch_asks():
            impl = on_host(impl)
        if impl is not self.impl and impl.storage.ctx is not self.impl.storage.ctx:
            flags = DLPACK_IS_COPIED
        if stream is not None or impl.storage.device_type != DL_CPU:
            _meet_stream(impl.storage, stream)
        if versioned:
            return make(export_versioned(impl, flags), True)
        return make(export_legacy(impl), False)

    @property
    def __cuda_array_interface__(self):
        """The CUDA Array Interface, version 3; AttributeError where it is not CUDA memory."""
        cdef TensorImpl impl = self.impl
        if impl.storage is None or impl.storage.device_type not in (DL_CUDA, DL_CUDA_MANAGED):
            where = "undefined" if impl.storage is None else f"on {impl.device()}"
            raise AttributeError(
                f"__cuda_array_interface__ is for CUDA memory, and this tensor is {where}.")
        interface = _cuda_interface(impl)
        if unlikely(observed):
            shared("__cuda_array_interface__", self, "dict", _nbytes(impl))
        return interface

    def __bytes__(self):
        # bytes(x) would take a tensor of one int for a length
        if unlikely(observed) and outermost():
            return _watched(self, "bytes", "bytes", Wrapper.__bytes__, {})
        view = memoryview(self)
        copying(view.nbytes, "bytes are a copy")
        return view.tobytes()

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        fill_buffer(self.impl, self, buffer, flags)
        if unlikely(observed):
            shared("memoryview", self, "buffer", buffer.len)

    def __releasebuffer__(self, Py_buffer* buffer):
        release_buffer(buffer)

    def __len__(self):
        cdef TensorImpl impl = self.impl
        impl.require_defined("len")
        if impl.ndim == 0:
            raise TypeError("A 0-d tensor has no len().")
        return impl.c_sizes[0]

    def __reduce_ex__(self, protocol):
        return reduced(self, protocol)

    def __reduce__(self):
        return reduced(self, 2)


cdef object _watched(object self, str call, str target, object method, dict arguments):
    return watched(call, self, target, method, (self,), arguments)


cdef inline int64_t _nbytes(TensorImpl impl) noexcept:
    return impl.c_numel * impl.c_dtype.itemsize


# The max_version that a consumer gave last and that was found to be new enough: consumers
# give the same tuple every time.
cdef object _known_version = (DLPACK_MAJOR, DLPACK_MINOR)


cdef TensorImpl _on_device(TensorImpl impl, object dl_device, object copy):
    try:
        kind, index = dl_device
        if index < 0:
            raise ValueError("The index is negative.")
        device = DeviceClass((int(kind), int(index)))
    except (TypeError, ValueError) as error:
        raise BufferError(
            f"dl_device {dl_device!r} is no (device type, index) of DLPack.") from error
    try:
        return to_device(impl, device, copy)
    except (EnforceNotMet, ImportError, AssertionError) as error:
        raise BufferError(f"The tensor does not go to {device}: {error}") from error


cdef int _meet_stream(Storage storage, object stream) except -1:
    """Have the consumer's stream wait for the work on ours (array API standard, __dlpack__)."""
    if not has_streams(storage.device_type):
        if stream is not None and stream != -1:
            raise BufferError(
                f"There are no streams on {storage.device()}; stream is None and not {stream!r}.")
        return 0
    from bridge.exchange.streams import meet
    meet(storage.device_index, stream, storage.device_type)
    return 0


def _cuda_interface(TensorImpl impl):
    cdef char* data
    if not impl.c_dtype.c_is_pod:
        raise AttributeError("__cuda_array_interface__ is for POD elements.")
    dtype = impl.c_dtype.numpy
    # bfloat16 as torch says it; of other types that are none of NumPy's own it says too little
    if dtype is None or dtype.str[1] == "V" and impl.c_dtype.name != "bfloat16":
        raise AttributeError(
            f"__cuda_array_interface__ has no name for elements of {impl.c_dtype}; "
            "__dlpack__ has.")
    data = pinned_data(impl, "__cuda_array_interface__")
    from bridge.exchange.streams import current
    cdef int64_t size = impl.c_dtype.itemsize
    return {
        "shape": tuple(impl.sizes()),
        "typestr": dtype.str,
        # no elements have no address (version 3)
        "data": (<uintptr_t>data if impl.c_numel else 0, bool(impl.storage.flags & READONLY)),
        "strides": None if impl.flags & CONTIGUOUS else tuple(
            stride * size for stride in impl.strides()),
        "version": 3,
        "stream": current(impl.storage.device_index),
    }


def impl_of(Wrapper wrapper):
    """The TensorImpl of a wrapper, for the exchange."""
    return wrapper.impl


set_wrapper(Wrapper, impl_of)


def of_class(cls, TensorImpl impl not None):
    """A wrapper of `impl`, of the class `cls`: one of ours, or a subclass of it."""
    cdef Wrapper wrapper = cls.__new__(cls)
    wrapper.impl = impl
    return wrapper


cdef int inherit_metadata(object cls) except -1:
    """Give `cls`, a wrapper class, its own descriptors of the methods that return metadata."""
    return own_methods(cls, Wrapper, (
        "sizes", "strides", "numel", "dtype", "itemsize", "nbytes", "storage"))
