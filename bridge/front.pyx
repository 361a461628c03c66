# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, binding=False, embedsignature=True, embedsignature.format=clinic
"""The front door: arguments in, one call down."""

from cpython.object cimport PyTypeObject

from bridge.at.tensor cimport Tensor as AtTensor
from bridge.at.tensor cimport wrap
from bridge.c10.copy cimport copied_since
from bridge.c10.observe cimport copying, observed, outermost, unlikely, watched
from bridge.c10.tensor_impl cimport CONTIGUOUS, TensorImpl
from bridge.c10.type_meta cimport as_type
from bridge.exchange.import_tensor cimport import_tensor, tristate
from bridge.exchange.conversion cimport remaining_copy, export_source
from bridge.exchange.numpy cimport export_array, numpy_loaded, numpy_array_type
from bridge.exchange.torch_api cimport is_torch_tensor, torch_c
from bridge.exchange.torch_export cimport export_torch
from bridge.exchange.torch_import cimport clone_torch, import_torch
from bridge.wrapper cimport Wrapper

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)

from bridge.c10.observe import ASKED as _ASKED
from bridge.exchange.adapters import TARGETS, adapter


def from_dlpack(x, *, device=None, copy=None):
    """An at.Tensor of the memory of `x`: shared, zero-copy, wherever that is right.

    `x` is anything with ``__dlpack__``, a DLPack capsule, a buffer (``bytes`` are
    read-only uint8), or an object with ``__array_interface__`` or
    ``__cuda_array_interface__``. `copy`: True copies always, False never, None where
    it must: foreign byte order, torch's lazy conjugate or negative bit, strides that
    are no whole number of elements, misaligned data. `device`: copy there if it is
    elsewhere.

    Raises
    ------
    BufferError: the memory cannot be exchanged (and why), or under ``copy=False`` not
        without a copy. Tensors that require grad are among them: use ``detach()``.
    TypeError: `x` has no tensor's memory.

    Follows from_dlpack of the Python array API standard, 2024.12.

    >>> import bridge, numpy
    >>> a = numpy.arange(3.0)
    >>> x = bridge.from_dlpack(a)
    >>> x.data_ptr() == a.ctypes.data, x.tolist()
    (True, [0.0, 1.0, 2.0])
    """
    if unlikely(observed) and outermost():
        return _watched_from_dlpack(x, device, copy)
    if device is None and copy is None and Py_TYPE(x) == torch_c.tensor_type:
        return wrap(import_torch(x, None))     # what import_tensor would do, a call nearer
    return wrap(import_tensor(x, device, copy))


def asarray(x, *, dtype=None, device=None, copy=None):
    """An at.Tensor of `x`: what `from_dlpack` takes, and Python scalars, nested lists,
    strings and ``bytes``, and objects that have ``__array__`` and nothing else, such as
    columns of pandas, by the array that NumPy gets of them.

    Types are inferred as NumPy does. Strings and ``bytes`` (and lists of them) make a
    tensor of type string, which tolist() reads and caffe2.Tensor(x) takes over; nothing
    else of the ATen style works on it. `dtype`, `device`: convert and copy if it is of
    another type or elsewhere. `copy` as in `from_dlpack`.

    Raises BufferError, TypeError as `from_dlpack`; ValueError: a ragged list.
    """
    if unlikely(observed) and outermost():
        return watched("asarray", x, "at.Tensor", _as_array, (x, dtype, device, copy))
    return _as_array(x, dtype, device, copy)


def _as_array(x, dtype, device, copy):
    from bridge import python_values
    tristate(copy)
    if python_values.is_strings(x, dtype):
        return python_values.tensor_of_strings(x, device, copy)
    if python_values.is_numbers(x):
        if copy is False:
            raise BufferError(
                f"{type(x).__name__} has no tensor's memory, so it is copied. Allow it with "
                "copy=None.")
        return python_values.tensor_of_numbers(x, dtype, device)
    try:
        tensor = wrap(import_tensor(x, device, copy))
    except TypeError:
        array = python_values.array_by_method(x, copy)
        if array is None:
            raise
        tensor = wrap(import_tensor(array, device, copy))
    if dtype is None:
        return tensor
    wanted = as_type(dtype)
    if copy is False and wanted is not tensor.dtype():
        raise BufferError(
            f"{tensor.dtype()} becomes {wanted} by a copy only. Allow it with copy=None.")
    return tensor.to(dtype=wanted)


cdef dict _exports = {}


cdef object _export(str name):
    export = _exports.get(name)
    if export is None:
        export = _exports[name] = adapter(name).export
    return export


def to_torch(x, *, copy=None, writable=False):
    """A ``torch.Tensor`` of the memory of `x`, anything the bridge can import; zero-copy.

    A torch tensor comes back itself. Read-only memory and negative strides, which
    torch cannot express, are copied under ``copy=None``; `writable` shares read-only
    memory all the same, and the caller promises not to write. ``copy=True`` copies always.

    Raises BufferError: not to be exchanged, or not without a copy under ``copy=False``.

    >>> import bridge
    >>> x = bridge.at.zeros(3)
    >>> t = bridge.to_torch(x)
    >>> t.data_ptr() == x.data_ptr(), bridge.to_torch(t) is t
    (True, True)
    """
    tristate(copy)
    if unlikely(observed) and outermost():
        return _watched_to_torch(x, copy, writable)
    if is_torch_tensor(x):
        return clone_torch(x) if copy is True else x
    impl = export_source(x, copy)
    if copy is True:
        copy = remaining_copy(x, impl, copy)
    return export_torch(impl, copy, writable)


def to_numpy(x, *, copy=None):
    """A ``numpy.ndarray`` of the memory of `x`, anything the bridge can import; zero-copy.

    Not writable where the memory is read-only. A NumPy array comes back itself.
    ``copy=True`` copies always.

    Raises BufferError: not in host memory, not to be exchanged, or not without a copy
    under ``copy=False``.

    >>> import bridge
    >>> x = bridge.at.zeros(3)
    >>> bridge.to_numpy(x)[0] = 7
    >>> x.tolist()
    [7.0, 0.0, 0.0]
    """
    tristate(copy)
    if unlikely(observed) and outermost():
        return _watched_to_numpy(x, copy)
    if numpy_loaded() and isinstance(x, numpy_array_type):
        return _copied(x) if copy is True else x
    impl = export_source(x, copy)
    array = export_array(impl, "to_numpy")
    return array if copy is not True or remaining_copy(x, impl, copy) is None else _copied(array)


def to_jax(x, *, copy=None):
    """A ``jax.Array`` of the memory of `x`, anything the bridge can import; zero-copy.

    JAX holds row-major memory only: other strides are copied. ``copy=True`` copies always.

    Raises ImportError: JAX is not installed. BufferError: not to be exchanged, or not
    without a copy under ``copy=False``; 64-bit elements while JAX's ``jax_enable_x64`` is
    off, which would be cut to 32.
    """
    tristate(copy)
    if unlikely(observed) and outermost():
        return watched("to_jax", x, "jax.Array", to_jax, (x,), {"copy": copy})
    return _export("jax")(x, copy)


def to_tensorflow(x, *, copy=None):
    """A ``tf.Tensor`` of the memory of `x`, anything the bridge can import; zero-copy.

    TensorFlow holds row-major memory only: other strides are copied. ``copy=True`` copies always.

    Raises ImportError: TensorFlow is not installed. BufferError: not to be exchanged, or
    not without a copy under ``copy=False``.
    """
    tristate(copy)
    if unlikely(observed) and outermost():
        return watched("to_tensorflow", x, "tf.Tensor", to_tensorflow, (x,), {"copy": copy})
    return _export("tensorflow")(x, copy)


def to_cupy(x, *, copy=None):
    """A ``cupy.ndarray`` of the memory of `x`, anything the bridge can import; zero-copy
    where that is on a CUDA device, and a copy to the current device otherwise.

    Raises ImportError: CuPy is not installed. BufferError: not to be exchanged, or not
    without a copy under ``copy=False``.
    """
    tristate(copy)
    if unlikely(observed) and outermost():
        return watched("to_cupy", x, "cupy.ndarray", to_cupy, (x,), {"copy": copy})
    return _export("cupy")(x, copy)


def convert(x, to, *, copy=None):
    """`x` as a tensor of another library, by its name: "torch", "numpy", "jax",
    "tensorflow", "cupy", "at" or "caffe2". Shares or copies as the function of that name.

    A caffe2.Tensor is row-major: other strides are copied under ``copy=None``.
    Raises ValueError: an unknown name; otherwise as that function.

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
        if unlikely(observed) and outermost():
            return watched("convert", x, f"{to}.Tensor", _wrapped, (x, to == "caffe2", copy))
        return _wrapped(x, to == "caffe2", copy)
    if to not in ("jax", "tensorflow", "cupy"):
        raise ValueError(f"{to!r} is no framework the bridge converts to; it converts to "
                         f"{', '.join(TARGETS)}.")
    return _by_name[to](x, copy=copy)


cdef dict _by_name = {"jax": to_jax, "tensorflow": to_tensorflow, "cupy": to_cupy}


def _wrapped(x, caffe2, copy):
    from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor
    cdef TensorImpl impl
    if isinstance(x, Wrapper):
        impl = (<Wrapper>x).impl
        if copy is not True and (not caffe2 or impl.storage is None or impl.flags & CONTIGUOUS):
            cls = Caffe2Tensor if caffe2 else AtTensor
            return x if isinstance(x, cls) else cls(x)
        if copy is True and caffe2 and not impl.c_dtype.c_is_pod:
            impl.require_defined("convert")
            copying(impl.c_numel * impl.c_dtype.itemsize, _ASKED)
            return Caffe2Tensor(x).Clone()
    impl = import_tensor(x, None, copy)
    if not caffe2:
        return wrap(impl)
    if not impl.flags & CONTIGUOUS:
        if copy is False:
            raise BufferError(
                "Caffe2-style tensors are contiguous, and this memory has strides "
                f"{impl.strides().vec()}. Allow a copy with copy=None.")
        impl = copied_since(impl, "Caffe2-style tensors are contiguous", "convert")
    return Caffe2Tensor._wrap(impl)


def explain(x):
    """Say whose memory `x` has: wrapper, TensorImpl, Storage, owner, and who else shares it.

    `x`: a tensor of any framework, a DLPack capsule (which is looked at and not consumed), a
    buffer, an object with ``__array_interface__``, a TensorImpl, a Storage, or a blob that holds
    a tensor. Nothing is copied, and `x` stays as it is.

    Gives an Explanation: it prints, shows itself in notebooks, and has ``to_dict()``, whose values
    are plain Python: ``address`` (int, of the first element; None: it has none), ``nbytes``,
    ``device``, ``dtype``, ``sizes``, ``strides`` (elements), ``readonly`` (None: it cannot say),
    ``owner``, ``shared_by`` (a list of texts), ``note`` (why something is missing, or None) and
    ``chain``, the same for each link from the wrapper to the owner.

    Raises TypeError: `x` is no tensor.

    Who shares is found among all objects that the garbage collector knows: that takes 0.1 s in a
    large program. NumPy arrays are not among them, and are counted by the owner's references.

    >>> import bridge
    >>> x = bridge.at.zeros(2, 3)
    >>> found = bridge.explain(x)
    >>> found.sizes, found.strides, found.owner, found.shared_by
    ([2, 3], [3, 1], 'DataPtr: 24 bytes of the allocator Allocator', [])
    >>> array = x.numpy()
    >>> bridge.explain(x).shared_by
    ['1 held by NumPy arrays, buffers or DLPack tensors that were handed out']
    """
    from bridge.see.explain import explain
    return explain(x)


def shares_memory(a, b):
    """Whether `a` and `b`, tensors of any frameworks, have a byte in common.

    Exact for any strides, as ``numpy.shares_memory``, which decides the hard cases. Tensors that
    require grad, torch's lazy conjugates and read-only memory count as what lies in memory;
    an empty tensor, or one without memory of its own (meta, fake, traced, deleted), shares with
    nothing; memory of different devices is different. Nothing is copied.

    Raises TypeError: `a` or `b` is no tensor. BufferError: it has memory that cannot be told,
    such as an opaque layout of torch's or TensorFlow's strings.

    >>> import bridge, numpy
    >>> a = numpy.arange(6)
    >>> x = bridge.from_dlpack(a)
    >>> bridge.shares_memory(x[1:], a), bridge.shares_memory(a[::2], x[1::2])
    (True, False)
    """
    from bridge.see.overlap import shares_memory
    return shares_memory(a, b)


def audit():
    """Write conversions down: ``with bridge.audit() as log:`` gives the log of all inside.

    The log has ``records`` (each with ``route``, ``copied``, ``nbytes``, ``reason``),
    ``copied_bytes`` and ``shared_bytes``, and prints as a table.

    A conversion takes a tensor to another framework, wrapper, device or type:

    - ``from_dlpack``, ``asarray``, ``convert`` and ``to_torch``, ``to_numpy`` … of `bridge`;
    - on both wrappers ``to_torch``, ``numpy``, ``__array__``, ``__dlpack__``, the buffer protocol,
      ``bytes``, ``__cuda_array_interface__``, and what reads or makes them by DLPack's C exchange
      table; ``at.Tensor(x)``, ``caffe2.Tensor(x)``, ``caffe2.Tensor(x, device)``, ``at.tensor(x)``;
    - ``to``, ``cpu``, ``cuda``, ``pin_memory`` of at.Tensor;
    - in workspaces and blobs, to feed and to fetch tensors, and ``FetchTorch``.

    What it calls inside is part of it: there is a record for each conversion that was called, not
    for its steps. One that fails leaves no record. Operations are no conversions, so the copies of
    ``clone``, ``CopyFrom``, ``x.float()`` and new tensors of numbers are not listed.

    An outer audit sees what an inner one records. Other threads are not seen, nor are other tasks,
    save those that were started inside: a task begins with a copy of the context it is made in.

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
    """Refuse copies: ``with bridge.no_copy():`` every conversion inside shares memory or raises.

    A conversion that would copy raises BufferError with the reason, whether the copy was asked for
    (``copy=True``, ``FeedBlob`` of a NumPy array, ``FetchBlob``) or not; all is as it was then.
    What counts as a conversion, and for whom, `audit` says. The error is an EnforceNotMet, too.

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
    copying(array.nbytes, _ASKED)
    return array.copy()


# The calls above once more, watched. Apart from them, since what they need would be made
# ready in each call.

cdef object _watched_from_dlpack(object x, object device, object copy):
    return watched("from_dlpack", x, "at.Tensor", from_dlpack, (x,),
                   {"device": device, "copy": copy})


cdef object _watched_to_torch(object x, object copy, object writable):
    return watched("to_torch", x, "torch.Tensor", to_torch, (x,),
                   {"copy": copy, "writable": writable})


cdef object _watched_to_numpy(object x, object copy):
    return watched("to_numpy", x, "numpy.ndarray", to_numpy, (x,), {"copy": copy})
