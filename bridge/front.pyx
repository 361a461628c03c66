# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, binding=False, embedsignature=True, embedsignature.format=clinic
"""The functions of `bridge` itself: arguments are checked here and passed one layer down."""

from bridge.at.tensor cimport Tensor as AtTensor
from bridge.at.tensor cimport wrap
from bridge.c10.copy cimport reported_copy
from bridge.c10.python_api cimport Py_TYPE
from bridge.c10.python_api cimport make_immortal
from bridge.c10.reports cimport is_observed, outermost, report_copy, run_observed, unlikely
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl, is_undefined
from bridge.exchange.import_tensor cimport import_tensor, tristate
from bridge.exchange.conversion cimport remaining_copy, export_source
from bridge.exchange.numpy cimport export_array, numpy_loaded, numpy_array_type
from bridge.exchange.torch_api cimport is_torch_tensor, torch_type
from bridge.exchange.torch_export cimport export_torch, export_torch_once
from bridge.exchange.torch_import cimport clone_torch, import_torch
from bridge.wrapper cimport Wrapper

from bridge.c10.reports import ASKED as _ASKED
from bridge.exchange.registry import adapter_named, exporting_names, on_change
from bridge.exchange.registry import register as _register


def from_dlpack(x, *, device=None, copy=None):
    """Return an at.Tensor of the memory of `x`; zero-copy whenever sharing is possible and correct.

    `x`: an object with ``__dlpack__``, a DLPack capsule, a buffer (``bytes`` become read-only
    uint8), or an object with ``__array_interface__``, ``__cuda_array_interface__`` or Arrow's
    ``__arrow_c_array__``.
    `copy`: True always copies, False never, None if necessary: foreign byte order, torch's lazy
    conjugate or negative bit, strides that are not a whole number of elements, misaligned data.
    `device`: copy there if the memory is elsewhere.

    Raises BufferError: the memory cannot be exchanged, with the reason, or not without a copy and
    ``copy=False``. A tensor that requires grad is refused, too: use ``detach()``.
    TypeError: `x` has no tensor's memory.

    Follows from_dlpack of the Python array API standard, 2024.12.

    >>> import bridge, numpy
    >>> a = numpy.arange(3.0)
    >>> x = bridge.from_dlpack(a)
    >>> x.data_ptr() == a.ctypes.data, x.tolist()
    (True, [0.0, 1.0, 2.0])
    >>> bridge.from_dlpack(a, copy=True).data_ptr() == a.ctypes.data
    False
    """
    if unlikely(is_observed()) and outermost():
        return _watched_from_dlpack(x, device, copy)
    if device is None and copy is None and Py_TYPE(x) == torch_type():
        return wrap(import_torch(x, None))     # as import_tensor, one call less
    return wrap(import_tensor(x, device, copy))


def asarray(x, *, dtype=None, device=None, copy=None):
    """Return an at.Tensor of `x`: a tensor of any kind, or Python numbers, lists or strings.

    `x`: what `from_dlpack` takes, shared as there. Also Python scalars, nested lists, strings and
    ``bytes``, which are copied, and objects with only ``__array__``, such as pandas columns.
    `dtype`: the element type; None infers it as NumPy does. `dtype` and `device` convert by a copy
    if the tensor differs. `copy`: as in `from_dlpack`.

    Strings and ``bytes``, and lists of them, become a tensor of type string, for ``tolist()`` and
    ``caffe2.Tensor(x)``; no other operation of at.Tensor supports it.

    Raises BufferError, TypeError: as `from_dlpack`. ValueError: a ragged list.

    >>> import bridge, numpy
    >>> bridge.asarray([[1, 2], [3, 4]], dtype="float32")
    at.Tensor([[1., 2.],
               [3., 4.]], dtype=float32)
    >>> a = numpy.arange(3)
    >>> bridge.shares_memory(bridge.asarray(a), a)
    True
    >>> bridge.asarray(["one", b"two"]).tolist()
    [b'one', b'two']
    """
    if unlikely(is_observed()) and outermost():
        return run_observed("asarray", x, "at.Tensor", _as_array, (x, dtype, device, copy))
    return _as_array(x, dtype, device, copy)


def _as_array(x, dtype, device, copy):
    from bridge.python_values import as_tensor
    tristate(copy)
    return as_tensor(x, dtype, device, copy)


# name -> function(x, copy) of an exporter
cdef dict _exports = {}
on_change(_exports.clear)


cdef object _export(str name):
    export = _exports.get(name)
    if export is None:
        adapter = adapter_named(name)
        if adapter is None or adapter.exporter is None:
            raise ValueError(
                f"{name!r} is not a library that the bridge converts to; it converts to "
                f"{', '.join((*_BUILT_IN, *exporting_names()))}.")
        export = adapter.exporter
        if not adapter.export_takes_copy:
            from functools import partial
            from bridge.library_export import export_to
            export = partial(export_to, adapter)
        _exports[name] = export
        if adapter_named(name) is not adapter:      # another thread has just registered the name
            _exports.pop(name, None)
    return export


def to_torch(x, *, copy=None, writable=False):
    """Return a ``torch.Tensor`` of the memory of `x`, anything that `from_dlpack` takes; zero-copy.

    A torch tensor is returned unchanged. Read-only memory and negative strides, which torch does
    not support, are copied under ``copy=None``. `writable`: share read-only memory all the same;
    the caller promises not to write. ``copy=True`` always copies.

    Raises BufferError: the memory cannot be exchanged, or not without a copy and ``copy=False``.
    ImportError: torch is not installed.

    >>> import bridge
    >>> x = bridge.at.zeros(3)
    >>> t = bridge.to_torch(x)
    >>> t.data_ptr() == x.data_ptr(), bridge.to_torch(t) is t
    (True, True)
    """
    tristate(copy)
    if unlikely(is_observed()) and outermost():
        return _watched_to_torch(x, copy, writable)
    if is_torch_tensor(x):
        return clone_torch(x) if copy is True else x
    impl = export_source(x, copy)
    if copy is True:
        copy = remaining_copy(x, impl, copy)
    if not isinstance(x, Wrapper):
        return export_torch_once(impl, copy, writable)
    return export_torch(impl, copy, writable)


def to_numpy(x, *, copy=None):
    """Return a ``numpy.ndarray`` of the memory of `x`, anything `from_dlpack` takes; zero-copy.

    A NumPy array is returned unchanged. The array is writable if the memory is. ``copy=True``
    always copies.

    Raises BufferError: the memory is not on the host, cannot be exchanged, or not without a copy
    and ``copy=False``.

    >>> import bridge
    >>> x = bridge.at.zeros(3)
    >>> bridge.to_numpy(x)[0] = 7
    >>> x.tolist()
    [7.0, 0.0, 0.0]
    """
    tristate(copy)
    if unlikely(is_observed()) and outermost():
        return _watched_to_numpy(x, copy)
    if numpy_loaded() and isinstance(x, numpy_array_type):
        return _copied(x) if copy is True else x
    impl = export_source(x, copy)
    array = export_array(impl, "to_numpy")
    return array if copy is not True or remaining_copy(x, impl, copy) is None else _copied(array)


def to_jax(x, *, copy=None):
    """Return a ``jax.Array`` of the memory of `x`, anything that `from_dlpack` takes.

    Zero-copy if the memory is row-major and aligned to 64 bytes, as JAX's is; otherwise a copy. A
    JAX array is returned unchanged. ``copy=True`` always copies.

    Raises BufferError: the memory cannot be exchanged, or not without a copy and ``copy=False``;
    64-bit elements while JAX's ``jax_enable_x64`` is off, which would truncate them to 32.
    ImportError: JAX is not installed.

    >>> import bridge
    >>> bridge.to_jax(bridge.at.zeros(2))  # doctest: +SKIP
    Array([0., 0.], dtype=float32)
    """
    tristate(copy)
    if unlikely(is_observed()) and outermost():
        return run_observed("to_jax", x, "jax.Array", to_jax, (x,), {"copy": copy})
    return _export("jax")(x, copy)


def to_tensorflow(x, *, copy=None):
    """Return a ``tf.Tensor`` of the memory of `x`, anything that `from_dlpack` takes.

    Zero-copy if the memory is row-major and aligned to 64 bytes, as TensorFlow's is; otherwise a
    copy. A TensorFlow tensor is returned unchanged. ``copy=True`` always copies.

    Raises BufferError: the memory cannot be exchanged, or not without a copy and ``copy=False``.
    ImportError: TensorFlow is not installed.

    >>> import bridge
    >>> bridge.to_tensorflow(bridge.at.zeros(2))  # doctest: +SKIP
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """
    tristate(copy)
    if unlikely(is_observed()) and outermost():
        return run_observed("to_tensorflow", x, "tf.Tensor", to_tensorflow, (x,), {"copy": copy})
    return _export("tensorflow")(x, copy)


def to_cupy(x, *, copy=None):
    """Return a ``cupy.ndarray`` of the memory of `x`, anything that `from_dlpack` takes.

    Zero-copy if the memory is on a CUDA device and writable; otherwise a copy, of host memory to
    the current device. A CuPy array is returned unchanged. ``copy=True`` always copies.

    Raises BufferError: the memory cannot be exchanged, or not without a copy and ``copy=False``.
    ImportError: CuPy is not installed.

    >>> import bridge
    >>> bridge.to_cupy(bridge.at.zeros(2, options="cuda"))  # doctest: +SKIP
    array([0., 0.], dtype=float32)
    """
    tristate(copy)
    if unlikely(is_observed()) and outermost():
        return run_observed("to_cupy", x, "cupy.ndarray", to_cupy, (x,), {"copy": copy})
    return _export("cupy")(x, copy)


def convert(x, to, *, copy=None):
    """Return `x` as a tensor of the library named `to`.

    `to`: "torch", "numpy", "at", "caffe2", the name of a library in the table of libraries in
    docs/sharing.md, or one that `register` was called with. Shares or copies as `to_torch`,
    `to_numpy` … do, and as the table says. "caffe2" returns a caffe2.Tensor, which is row-major: other
    strides are copied under ``copy=None``. An object of the library is returned unchanged.

    Raises ValueError: another name. BufferError: the library cannot hold the memory, or not
    without a copy and ``copy=False``. ImportError: it is not installed.

    >>> import bridge
    >>> x = bridge.at.zeros(3)
    >>> bridge.shares_memory(x, bridge.convert(x, "numpy"))
    True
    """
    tristate(copy)
    if to == "torch":
        return to_torch(x, copy=copy)
    if to == "numpy":
        return to_numpy(x, copy=copy)
    if to == "at" or to == "caffe2":
        if unlikely(is_observed()) and outermost():
            return run_observed("convert", x, f"{to}.Tensor", _wrapped, (x, to == "caffe2", copy))
        return _wrapped(x, to == "caffe2", copy)
    if not isinstance(to, str):
        raise ValueError(f"The name of a library is a string such as 'torch', not {to!r}.")
    if unlikely(is_observed()) and outermost():
        return run_observed("convert", x, to, convert, (x, to), {"copy": copy})
    return _export(to)(x, copy)


# The libraries besides those of bridge.exchange.registry.
cdef tuple _BUILT_IN = ("torch", "numpy", "at", "caffe2")


def register(name, *, types=(), importer=None, exporter=None):
    """Register a library: all doors take its objects, and `convert` knows its name.

    `types`: its classes, or their dotted names, such as ``"openvino.Tensor"``; nothing is imported
    for those. `importer`: ``importer(x)`` returns something that `from_dlpack` takes, whose memory
    lives as long as `x`, which is kept. `x` itself: it is left to its own protocols. `exporter`:
    ``exporter(at_tensor)`` returns an object of the library, for ``convert(x, name)``.

    Whether the two share memory is found out by comparing addresses, for ``copy=False``, `audit`
    and `no_copy`. Registering a name again replaces it.

    A package offers its adapter by an entry point of the group ``bridge.adapters``: a callable
    without arguments that calls this function. It is called when its name, or an object of a
    class of the package, is first met.

    Raises TypeError: an argument is of the wrong type; nothing is registered then.

    >>> import bridge
    >>> class Signal:
    ...     def __init__(self, samples):
    ...         self.samples = samples
    >>> bridge.register("signal", types=[Signal], importer=lambda x: x.samples, exporter=Signal)
    >>> bridge.to_numpy(Signal(bytearray(b"ab"))).tolist()
    [97, 98]
    >>> type(bridge.convert(bridge.at.zeros(2), "signal")).__name__
    'Signal'
    """
    if name in _BUILT_IN:
        raise TypeError(f"{name!r} is built in, and cannot be replaced.")
    _register(name, types=types, importer=importer, exporter=exporter)


def _wrapped(x, caffe2, copy):
    from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor
    cdef TensorImpl impl
    if isinstance(x, Wrapper):
        impl = (<Wrapper>x).impl
        if copy is not True and (not caffe2 or is_undefined(impl) or impl.flags & CONTIGUOUS):
            cls = Caffe2Tensor if caffe2 else AtTensor
            return x if isinstance(x, cls) else cls(x)
        if copy is True and caffe2 and not impl.c_dtype.c_is_pod:
            impl.require_defined("convert")
            report_copy(impl.c_numel * impl.c_dtype.itemsize, _ASKED)
            return Caffe2Tensor(x).Clone()
    impl = import_tensor(x, None, copy)
    if not caffe2:
        return wrap(impl)
    if not impl.flags & CONTIGUOUS:
        if copy is False:
            raise BufferError(
                "Caffe2-style tensors are contiguous, and this memory has strides "
                f"{impl.strides().vec()}. Allow a copy with copy=None.")
        impl = reported_copy(impl, "Caffe2-style tensors are contiguous", "convert")
    return Caffe2Tensor._wrap(impl)


def explain(*tensors):
    """Return who owns the memory of a tensor, from wrapper to owner, and who else shares it.

    Of several tensors: an explanation of each, and one picture of all, ``svg()``.

    `tensors`: each a tensor of any framework, a DLPack capsule (it is not consumed), a
    buffer, an object with ``__array_interface__``, a TensorImpl, a Storage, or a blob that holds
    a tensor. Nothing is copied, and no tensor changes.

    The Explanation prints as text and shows itself in notebooks. ``svg()`` is a picture: buffers as
    bars to scale, and under each who sees which bytes; read-only memory is hatched. ``to_dict()``
    has plain Python values: ``address`` (int, of the first element; None without memory),
    ``nbytes``, ``device``, ``dtype``, ``sizes``, ``strides`` (elements), ``readonly`` (None:
    unknown), ``owner``, ``shared_by`` (a list of texts), ``note`` (why something is missing, or
    None) and ``chain``, the same for each link from the wrapper to the owner.

    Raises TypeError: an argument is not a tensor, or there is none.

    Sharers are searched among all objects that the garbage collector tracks, which takes 0.1 s in
    a large program. It does not track NumPy arrays: those are counted by the owner's references.

    >>> import bridge
    >>> x = bridge.at.zeros(2, 3)
    >>> found = bridge.explain(x)
    >>> found.sizes, found.strides, found.owner, found.shared_by
    ([2, 3], [3, 1], 'DataPtr: 24 bytes of the allocator Allocator', [])
    >>> array = x.numpy()
    >>> bridge.explain(x).shared_by
    ['1 held by exported NumPy arrays, buffers or DLPack tensors']
    """
    from bridge.see.explain import explain
    return explain(tensors)


def shares_memory(a, b):
    """Return whether `a` and `b`, tensors of any frameworks, have a byte in common.

    Exact for any strides, like ``numpy.shares_memory``. Tensors that require grad, torch's lazy
    conjugates and read-only memory are compared by their memory. A tensor without elements, or
    without memory of its own (meta, fake, traced, deleted), shares with nothing, and memory of
    different devices is never shared. Nothing is copied.

    Raises TypeError: `a` or `b` is not a tensor. BufferError: the address of its memory is not
    accessible, as with torch's opaque layouts and TensorFlow's strings.

    >>> import bridge, numpy
    >>> a = numpy.arange(6)
    >>> x = bridge.from_dlpack(a)
    >>> bridge.shares_memory(x[1:], a), bridge.shares_memory(a[::2], x[1::2])
    (True, False)
    """
    from bridge.see.overlap import shares_memory
    return shares_memory(a, b)


def audit():
    """Record conversions: ``with bridge.audit() as log:`` logs every conversion in the block.

    The log has ``records`` (each with ``route``, ``copied``, ``nbytes``, ``reason``),
    ``copied_bytes`` and ``shared_bytes``, and prints as a table.

    A conversion takes a tensor to another framework, wrapper, device or type:

    - ``from_dlpack``, ``asarray``, ``convert`` and ``to_torch``, ``to_numpy`` … of `bridge`;
    - on both wrappers ``to_torch``, ``numpy``, ``__array__``, ``__dlpack__``, the buffer protocol,
      ``bytes``, ``__array_interface__``, ``__cuda_array_interface__``, ``__arrow_c_array__``, and
      what reads or makes them by DLPack's C exchange table; ``at.Tensor(x)``,
      ``caffe2.Tensor(x)``, ``caffe2.Tensor(x, device)``, ``at.tensor(x)``;
    - ``to``, ``cpu``, ``cuda``, ``pin_memory`` of at.Tensor;
    - in workspaces and blobs, to feed and to fetch tensors, and ``FetchTorch``.

    There is one record per conversion that is called, not one for each of its steps, and none if it
    fails. Operations are not conversions, so the copies of ``clone``, ``CopyFrom``, ``x.float()``
    and new tensors of numbers are not listed.

    An outer audit also records what an inner one does. Other threads are not recorded, nor are
    asyncio tasks, except those started in the block: a task copies the context it is created in.

    >>> import bridge, numpy
    >>> array = numpy.arange(3.0)
    >>> with bridge.audit() as log:
    ...     x = bridge.from_dlpack(array)
    ...     y = bridge.from_dlpack(array.astype(">f8"))
    >>> [record.copied for record in log.records], log.copied_bytes
    ([False, True], 24)
    """
    from bridge.see.contexts import Audit
    return Audit()


def no_copy():
    """Forbid copies: in ``with bridge.no_copy():`` every conversion shares memory or raises.

    A conversion that would copy raises BufferError with the reason, even if the copy was asked for
    (``copy=True``, ``FeedBlob`` of a NumPy array, ``FetchBlob``), and changes nothing. The error
    is also an EnforceNotMet. See `audit` for what counts as a conversion, and in which threads.

    >>> import bridge, numpy
    >>> array = numpy.arange(3.0)
    >>> with bridge.no_copy():
    ...     x = bridge.from_dlpack(array)
    ...     y = bridge.from_dlpack(array.astype(">f8"))
    Traceback (most recent call last):
        ...
    bridge.c10.errors.EnforceBufferError: [enforce fail at from_dlpack] numpy.ndarray -> ...
    """
    from bridge.see.contexts import NoCopy
    return NoCopy()


cdef object _copied(object array):
    report_copy(array.nbytes, _ASKED)
    return array.copy()


# The calls above while bridge.audit or bridge.no_copy is active. They are separate functions, since
# Cython prepares variables for the arguments in every call of the function that uses them.

cdef object _watched_from_dlpack(object x, object device, object copy):
    return run_observed("from_dlpack", x, "at.Tensor", from_dlpack, (x,),
                        {"device": device, "copy": copy})


cdef object _watched_to_torch(object x, object copy, object writable):
    return run_observed("to_torch", x, "torch.Tensor", to_torch, (x,),
                        {"copy": copy, "writable": writable})


cdef object _watched_to_numpy(object x, object copy):
    return run_observed("to_numpy", x, "numpy.ndarray", to_numpy, (x,), {"copy": copy})


# Threads that call them count no references to them.
make_immortal(from_dlpack)
make_immortal(to_torch)
make_immortal(to_numpy)
make_immortal(convert)
