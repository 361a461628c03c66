# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The base of both tensor classes: metadata, and export to other frameworks."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t

from bridge.c10.array_ref cimport ArrayRef
from bridge.c10.attribute cimport callable_attribute
from bridge.c10.device cimport device_of
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport FREE_THREADED, word64
from bridge.c10.reports cimport (
    is_observed,
    outermost,
    report_copy,
    report_shared,
    run_observed,
    unlikely,
)
from bridge.c10.slots cimport add_to_class, own_methods
from bridge.c10.storage cimport Storage
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    FEW_DIMS,
    TensorImpl,
    dtype_of,
    is_undefined,
    nbytes_now,
    ndim_of,
    read_sizes,
    seen,
    sizes_ref_of,
    storage_of,
)
from bridge.c10.type_meta cimport TypeMeta
from bridge.dlpack.abi cimport DL_CPU
from bridge.exchange.buffer_export cimport fill_buffer, release_buffer
from bridge.exchange.consumers cimport require_consumer_device
from bridge.exchange.dlpack_capsule cimport dlpack_capsule
from bridge.exchange.import_tensor cimport tristate
from bridge.exchange.numpy cimport export_array
from bridge.exchange.torch_api cimport torch_type
from bridge.exchange.torch_export cimport export_torch, imported_tensor

# It says what they are called, and loads none.
import bridge.libraries  # no-cython-lint
from bridge.c10.array_ref import Shape
from bridge.c10.attribute import Count
from bridge.c10.errors import EnforceBufferError, EnforceTypeError
from bridge.c10.reports import ASKED as _ASKED

cdef extern from "Python.h":
    PyObject* calling_globals "PyEval_GetGlobals"()     # of the Python code that called us


cdef class Wrapper(Handle):
    """The common base of `bridge.at.Tensor` and `bridge.caffe2.Tensor`; not for direct use."""

    # pyi: dtype: CallableAttribute[TypeMeta]
    # pyi: device: CallableAttribute[Device]
    # pyi: itemsize: CallableAttribute[Count]
    # pyi: nbytes: CallableAttribute[Count]
    @classmethod
    def _of(cls, TensorImpl impl not None) -> Self:
        """Return a tensor of this class, or of a subclass, around `impl`; unpickling calls it."""
        cdef Wrapper wrapper = cls.__new__(cls)
        wrapper.impl = impl
        return wrapper

    def defined(self) -> bool:
        """Return whether there is a tensor; ``caffe2.Tensor()`` is undefined."""
        return not is_undefined(self.impl)

    def unsafeGetTensorImpl(self) -> TensorImpl:
        """Return the TensorImpl, shared."""
        return self.impl

    def is_same(self, other: Wrapper) -> bool:
        """Return whether `other`, of either tensor class, has the same TensorImpl.

        Raises EnforceNotMet, also a TypeError: `other` is not a tensor of the bridge.
        """
        if not isinstance(other, Wrapper):
            raise EnforceTypeError(
                "A bridge tensor can be compared with another bridge tensor only, not with "
                f"{type(other).__name__}.", f"{type(self).__name__}.is_same")
        return self.impl is (<Wrapper>other).impl

    # Metadata.

    def sizes(self) -> ArrayRef:
        """Return the sizes as an ArrayRef: a snapshot, which later changes leave as it is."""
        cdef TensorImpl impl = self.impl
        cdef ArrayRef known = sizes_ref_of(impl)
        if known is not None:
            return known
        impl.require_defined("Tensor.sizes")
        return impl.sizes_view()

    def strides(self) -> ArrayRef:
        """Return the strides, in elements, as an ArrayRef: a snapshot."""
        self.impl.require_defined("Tensor.strides")
        return self.impl.strides_view()

    @property
    def shape(self) -> Shape:
        """The sizes as a tuple of ints; ``x.shape.numel()`` counts the elements, as in torch."""
        cdef TensorImpl impl = self.impl
        cdef tuple shape
        cdef object size
        cdef int64_t[FEW_DIMS] room
        cdef int64_t* sizes
        cdef int i, ndim
        if is_undefined(impl):
            impl.require_defined("Tensor.shape")
        shape = PyTuple_New(ndim_of(impl))
        read_sizes(impl, room, &sizes, &ndim)
        if sizes == NULL or PyTuple_GET_SIZE(shape) != ndim:
            # of many dimensions, or it was changed meanwhile: the garbage collector runs Python
            return Shape(impl.sizes_view())
        for i in range(ndim):
            size = sizes[i]
            Py_INCREF(size)                     # the tuple takes the reference
            PyTuple_SET_ITEM(shape, i, size)
        return Shape(shape)

    def numel(self) -> int:
        """Return the number of elements."""
        self.impl.require_defined("Tensor.numel")
        return word64(&self.impl.c_numel)

    def storage(self) -> Storage:
        """Return the Storage, shared."""
        self.impl.require_defined("Tensor.storage")
        return storage_of(self.impl)

    # Export.

    def to_torch(self, *, copy: bool | None = None, writable: bool = False) -> torch.Tensor:
        """Return a ``torch.Tensor`` of the same memory; an imported torch tensor itself.

        Read-only memory and negative strides, which torch does not support, are copied under
        ``copy=None``; ``writable=True`` shares read-only memory all the same.
        CUDA memory that the bridge allocated belongs to a torch storage: tell torch of a use on a
        second stream by the tensor's ``record_stream``; resizing it there ends this tensor's
        memory.

        Raises BufferError: non-POD or unallocated elements, a type that torch lacks, or a copy
        is needed under ``copy=False``.

        >>> import bridge
        >>> x = bridge.at.zeros(3)
        >>> x.to_torch().fill_(7.0).data_ptr() == x.data_ptr(), x.tolist()
        (True, [7.0, 7.0, 7.0])
        """
        cdef PyObject* found
        if unlikely(is_observed()) and outermost():
            return _watched(self, "to_torch", "torch.Tensor", Wrapper.to_torch,
                            {"copy": copy, "writable": writable})
        if copy is None and writable is False:
            found = imported_tensor(self)
            return export_torch(self.impl) if found == NULL else <object>found
        return export_torch(self.impl, tristate(copy), bool(writable))

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a ``numpy.ndarray`` of the same memory, writable if the memory is.

        Raises BufferError: not in host memory, non-POD or unallocated elements, an element type
        or a number of dimensions that NumPy lacks.

        >>> import bridge
        >>> x = bridge.at.zeros(2)
        >>> x.numpy()[0] = 7
        >>> x.tolist()
        [7.0, 0.0]
        """
        if unlikely(is_observed()) and outermost():
            return _watched(self, "numpy", "numpy.ndarray", Wrapper.numpy, {})
        return export_array(self.impl, "numpy")

    def to_numpy(
        self, dtype: Any = None, copy: bool = False, na_value: Any = None
    ) -> np.ndarray[Any, Any]:
        """Return `numpy`'s array, converted to `dtype`; columns of pandas and polars have it, too.

        It shares the memory unless `dtype` is another type or `copy` is true. `na_value` stands for
        missing elements, of which there are none.

        Raises BufferError: as `numpy`.

        >>> import bridge
        >>> bridge.at.tensor([1, 0]).to_numpy(dtype=bool)
        array([ True, False])
        """
        return self.__array__(dtype, True if copy else None)

    @property
    def ctypes(self) -> Any:
        """NumPy's ``ctypes`` of the memory, whose ``data`` is the address of the first element.

        Raises BufferError: as `numpy`, or not row-major: what takes an address goes by that.
        """
        if not seen(self.impl).flags & CONTIGUOUS:
            raise EnforceBufferError(
                "The elements are not row-major without gaps, which a bare address cannot say. "
                "Call contiguous().", "Tensor.ctypes", condition="is_contiguous()")
        return self.numpy().ctypes

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return a ``numpy.ndarray`` for ``numpy.asarray`` (NumPy 2's protocol).

        It shares the memory unless `dtype` (of NumPy) is another type or ``copy=True``.

        Raises BufferError: as `numpy`. ValueError: ``copy=False``, and `dtype` needs a copy.
        """
        if unlikely(is_observed()) and outermost():
            return _watched(self, "__array__", "numpy.ndarray", Wrapper.__array__,
                            {"dtype": dtype, "copy": copy})
        tristate(copy)
        array = export_array(self.impl, "__array__")
        if dtype is not None and dtype != array.dtype:
            if copy is False:
                raise ValueError(f"Converting {array.dtype} to {dtype} needs a copy.")
            report_copy(array.nbytes, f"{array.dtype} becomes {dtype}")
            return array.astype(dtype)
        if copy is not True:
            return array
        report_copy(array.nbytes, _ASKED)
        return array.copy()

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's (device type, index) of the memory."""
        cdef Storage storage = storage_of(self.impl)
        if storage is None:
            self.impl.require_defined("__dlpack_device__")
        if storage.device_type != DL_CPU:
            require_consumer_device(storage.device_type, storage.device_index)
        return storage.device_type, storage.device_index if storage.device_index > 0 else 0

    def __dlpack__(
        self,
        *,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
        max_version: tuple[int, int] | None = None,
        stream: int | None = None,
    ) -> CapsuleType:
        """Return a DLPack capsule of the memory; shared unless an argument needs a copy.

        Versioned if `max_version` is (1, 0) or later, else legacy. `copy`: True always copies,
        False never, None if necessary. `dl_device`: copy there if the memory is elsewhere.
        `stream`: the consumer's CUDA stream, which waits for ours; -1 for no synchronisation.

        torch.from_dlpack and paddle.from_dlpack, which support neither read-only memory nor
        negative strides, get a copy of such memory, and page-locked memory as the CPU's.

        Raises BufferError: the memory cannot be exchanged this way. ValueError, TypeError: an
        argument is not one of the standard's.

        Follows __dlpack__ of the Python array API standard, 2024.12.
        """
        if unlikely(is_observed()) and outermost():
            return _watched(
                self, "__dlpack__", "DLPack capsule", Wrapper.__dlpack__,
                {"stream": stream, "max_version": max_version, "dl_device": dl_device,
                 "copy": copy})
        return dlpack_capsule(self.impl, stream, max_version, dl_device, copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA Array Interface, version 3; AttributeError if it is not CUDA memory."""
        from bridge.exchange.buffer_export import export_cuda_interface

        interface = export_cuda_interface(self.impl)
        if unlikely(is_observed()):
            report_shared("__cuda_array_interface__", self, "dict", nbytes_now(self.impl))
        return interface

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's array interface, version 3; AttributeError if it is not host memory."""
        from bridge.exchange.buffer_export import export_array_interface

        interface = export_array_interface(self.impl)
        if unlikely(is_observed()):
            report_shared("__array_interface__", self, "dict", nbytes_now(self.impl))
        return interface

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Return what `func` of NumPy gives for arrays of the same memory.

        Follows NEP 18.
        """
        from bridge.exchange.array_function import call_numpy
        return call_numpy(func, args, kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Return what a ufunc of NumPy gives for arrays of the same memory, which ``out=`` writes.

        Raises EnforceNotMet: what is written is read-only.

        Follows NEP 13.
        """
        from bridge.exchange.array_function import call_ufunc
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __arrow_c_schema__(self) -> CapsuleType:
        """Return a capsule of the ArrowSchema that `__arrow_c_array__` returns.

        Raises BufferError: as `__arrow_c_array__`.

        Follows the Arrow PyCapsule interface.
        """
        from bridge.exchange.arrow_export import arrow_schema

        return arrow_schema(self.impl)

    def __arrow_c_array__(
        self, requested_schema: CapsuleType | None = None
    ) -> tuple[CapsuleType, CapsuleType]:
        """Return capsules of an ArrowSchema and an ArrowArray of the memory, shared.

        One dimension is an array of numbers, more are an ``arrow.fixed_shape_tensor``. Booleans
        are copied: Arrow packs them into bits. A type of numbers in `requested_schema` is converted
        to, by a copy, if it can hold the values.

        Raises BufferError: not row-major, no dimensions, on a device, elements that Arrow lacks, or
        values that the requested type cannot hold.

        Follows the Arrow PyCapsule interface.
        """
        if unlikely(is_observed()) and outermost():
            return _watched(self, "__arrow_c_array__", "Arrow array", Wrapper.__arrow_c_array__,
                            {"requested_schema": requested_schema})
        from bridge.exchange.arrow_export import arrow_array

        return arrow_array(self.impl, requested_schema)

    def __arrow_c_device_array__(
        self, requested_schema: CapsuleType | None = None, **kwargs: Any
    ) -> tuple[CapsuleType, CapsuleType]:
        """Return capsules of an ArrowSchema and an ArrowDeviceArray of the memory, on any device.

        As `__arrow_c_array__`. The work on CUDA memory is waited for.

        Raises BufferError: as `__arrow_c_array__`. NotImplementedError: an unknown option.

        Follows the Arrow PyCapsule interface.
        """
        unknown = [name for name, value in kwargs.items() if value is not None]
        if unknown:
            raise NotImplementedError(f"__arrow_c_device_array__ has no option {unknown[0]!r}.")
        if unlikely(is_observed()) and outermost():
            return _watched(self, "__arrow_c_device_array__", "Arrow array",
                            Wrapper.__arrow_c_device_array__,
                            {"requested_schema": requested_schema})
        from bridge.exchange.arrow_export import arrow_device_array

        return arrow_device_array(self.impl, requested_schema)

    def tobytes(self, order: str | None = "C") -> bytes:
        """Return the elements as bytes, a copy: row-major, or column-major if `order` is ``"F"``.

        ``"A"`` is column-major for a tensor that is so in memory. As ``numpy.ndarray.tobytes``.

        Raises BufferError: as `numpy`.

        >>> import bridge
        >>> bridge.at.tensor([1, 2], dtype="uint8").tobytes()
        b'\\x01\\x02'
        """
        if unlikely(is_observed()) and outermost():
            return _watched(self, "tobytes", "bytes", Wrapper.tobytes, {"order": order})
        array = export_array(self.impl, "tobytes")
        report_copy(array.nbytes, "bytes are a copy")
        return array.tobytes(order)

    def __bytes__(self) -> bytes:
        # bytes(x) would take a tensor of one int for a length
        if unlikely(is_observed()) and outermost():
            return _watched(self, "bytes", "bytes", Wrapper.__bytes__, {})
        view = memoryview(self)
        report_copy(view.nbytes, "bytes are a copy")
        return view.tobytes()

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        fill_buffer(self.impl, self, buffer, flags)
        if unlikely(is_observed()):
            report_shared("memoryview", self, "buffer", buffer.len)

    def __releasebuffer__(self, Py_buffer* buffer):
        release_buffer(buffer)

    def __len__(self) -> int:
        cdef int64_t[FEW_DIMS] room
        cdef int64_t* sizes
        cdef int ndim
        cdef TensorImpl impl = self.impl
        impl.require_defined("len")
        read_sizes(impl, room, &sizes, &ndim)
        if ndim == 0:
            raise TypeError("A 0-d tensor has no len().")
        return impl.sizes_view()[0] if sizes == NULL else sizes[0]

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        from bridge.pickling import reduced

        return reduced(self, protocol)

    def __reduce__(self) -> tuple[Any, ...]:
        from bridge.pickling import reduced

        return reduced(self, 2)


cdef object _watched(object self, str call, str target, object method, dict arguments):
    return run_observed(call, self, target, method, (self,), arguments)


cdef inline TypeMeta _type(Wrapper wrapper):
    # (the argument counts a reference)
    return <TypeMeta>dtype_of(wrapper.impl) if FREE_THREADED else wrapper.impl.c_dtype


cdef object _dtype(object wrapper):
    return _type(<Wrapper>wrapper)


# The module that reads an attribute -> whose types it takes; see `dtype_readers`.
cdef dict _kinds = {}


cdef object _dtype_attribute(object wrapper):
    cdef TypeMeta meta = _type(<Wrapper>wrapper)
    cdef PyObject* names = calling_globals()
    if names == NULL:
        return meta
    module = (<dict>names).get("__name__")
    if type(module) is not str:
        return meta
    kind = _kinds.get(module)
    if kind is None:
        from bridge.exchange.dtype_readers import reader_kind

        kind = reader_kind(module)
        if len(_kinds) < 65536:
            _kinds[module] = kind
    if not kind or not meta:
        return meta
    if kind == "torch":
        found = meta.torch if torch_type() != NULL else None
        return meta if found is None else found
    try:
        return meta.numpy
    except EnforceTypeError:        # NumPy has no such type
        return meta


cdef object _itemsize(object wrapper):
    return _type(<Wrapper>wrapper).itemsize


cdef object _nbytes(object wrapper):
    (<Wrapper>wrapper).impl.require_defined("Tensor.nbytes")
    return nbytes_now((<Wrapper>wrapper).impl)


cdef object _itemsize_attribute(object wrapper):
    return Count(_itemsize(wrapper))


cdef object _nbytes_attribute(object wrapper):
    return Count(_nbytes(wrapper))


cdef object _device(object wrapper):
    cdef Storage storage = storage_of((<Wrapper>wrapper).impl)
    if storage is None:
        (<Wrapper>wrapper).impl.require_defined("Tensor.device")
    return device_of(storage.device_type, storage.device_index)


cdef int inherit_metadata(object cls) except -1:
    """Add to `cls`, a wrapper class, its own descriptors of the methods that are called most."""
    for attribute in (
        callable_attribute(
            cls, "dtype", "The TypeMeta of the elements; an undefined one, which is false, if not "
            "set. ``x.dtype()`` is the same object. Read by the code of torch or of a library for "
            "it, it is the ``torch.dtype``; by that of a library for NumPy's arrays, the "
            "``numpy.dtype``: they take no other types.", _dtype, _dtype_attribute),
        callable_attribute(
            cls, "device", "The Device of the memory. ``x.device()`` is the same object.",
            _device, _device),
        callable_attribute(
            cls, "itemsize", "The size of an element in bytes, also as ``x.itemsize()``; 0 if the "
            "element type is not set.", _itemsize, _itemsize_attribute),
        callable_attribute(
            cls, "nbytes", "The size of all elements in bytes, also as ``x.nbytes()``: ``numel() * "
            "itemsize()``.", _nbytes, _nbytes_attribute),
    ):
        add_to_class(cls, attribute.__name__, attribute)
    return own_methods(
        cls, Wrapper, ("sizes", "strides", "numel", "storage", "to_torch", "numpy"))
