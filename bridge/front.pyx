# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, binding=False, embedsignature=True, embedsignature.format=clinic
"""The front door: arguments in, one call down."""

from cpython.object cimport PyTypeObject

from bridge.at.tensor cimport Tensor as AtTensor
from bridge.at.tensor cimport wrap
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.exchange.ingest cimport ingest
from bridge.exchange.numpy cimport array_out, meet_numpy, numpy_array_type
from bridge.exchange.torch cimport (
    is_torch_tensor,
    tensor_in,
    tensor_out,
    torch_tensor_type,
)
from bridge.wrapper cimport Wrapper

cdef extern from "Python.h":
    PyTypeObject* Py_TYPE(object)

from bridge.exchange.adapters import adapter, names


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
    if device is None and copy is None and Py_TYPE(x) == torch_tensor_type:
        return wrap(tensor_in(x))       # what ingest would do, a call nearer
    return wrap(ingest(x, device, copy))


def asarray(x, *, dtype=None, device=None, copy=None):
    """An at.Tensor of `x`: what `from_dlpack` takes, and Python scalars, nested lists,
    strings and ``bytes``.

    Types are inferred as NumPy does. Strings and ``bytes`` (and lists of them) make a
    tensor of type string, which tolist() reads and caffe2.Tensor(x) takes over; nothing
    else of the ATen style works on it. `dtype`, `device`: convert and copy if it is of
    another type or elsewhere. `copy` as in `from_dlpack`.

    Raises BufferError, TypeError as `from_dlpack`; ValueError: a ragged list.
    """
    return _as_array(x, dtype, device, copy)


def _as_array(x, dtype, device, copy):
    from bridge.exchange import values
    if values.is_text(x, dtype):
        return values.text(x, device, copy)
    if values.is_plain(x):
        if copy is False:
            raise BufferError(
                f"{type(x).__name__} has no tensor's memory, so it is copied. Allow it with "
                "copy=None.")
        return values.plain(x, dtype, device)
    tensor = wrap(ingest(x, device, copy))
    if dtype is None:
        return tensor
    converted = tensor.to(dtype=dtype)
    if copy is False and converted is not tensor:
        raise BufferError(
            f"{tensor.dtype()} becomes {converted.dtype()} by a copy only. Allow it with "
            "copy=None.")
    return converted


cdef TensorImpl _impl(object x, object copy):
    if isinstance(x, Wrapper):
        return (<Wrapper>x).impl
    return ingest(x, None, False if copy is False else None)


cdef dict _gives = {}


cdef object _give(str name):
    give = _gives.get(name)
    if give is None:
        give = _gives[name] = adapter(name).give
    return give


cdef object _tristate(object copy):
    if copy is not None and copy is not True and copy is not False:
        raise TypeError(f"copy is True, False or None, not {copy!r}.")
    return copy


def to_torch(x, *, copy=None, writable=False):
    """A ``torch.Tensor`` of the memory of `x`, anything the bridge can import; zero-copy.

    A torch tensor comes back itself. Read-only memory and negative strides, which
    torch cannot express, are copied under ``copy=None``; `writable` shares read-only
    memory all the same, and the caller promises not to write.

    Raises BufferError: not to be exchanged, or not without a copy under ``copy=False``.
    """
    _tristate(copy)
    if is_torch_tensor(x):
        return x.clone() if copy is True else x
    return tensor_out(_impl(x, copy), copy, writable)


def to_numpy(x, *, copy=None):
    """A ``numpy.ndarray`` of the memory of `x`, anything the bridge can import; zero-copy.

    Not writable where the memory is read-only. A NumPy array comes back itself.

    Raises BufferError: not in host memory, or not to be exchanged.
    """
    _tristate(copy)
    if meet_numpy() and isinstance(x, numpy_array_type):
        return x.copy() if copy is True else x
    array = array_out(_impl(x, copy), "to_numpy")
    return array.copy() if copy is True else array


def to_jax(x, *, copy=None):
    """A ``jax.Array`` of the memory of `x`, anything the bridge can import; zero-copy.

    JAX holds row-major memory only: other strides are copied under ``copy=None``.
    Raises BufferError: not to be exchanged; 64-bit elements while JAX's
    ``jax_enable_x64`` is off, which would be cut to 32.
    """
    return _give("jax")(x, _tristate(copy))


def to_tensorflow(x, *, copy=None):
    """A ``tf.Tensor`` of the memory of `x`, anything the bridge can import; zero-copy.

    TensorFlow holds row-major memory only: other strides are copied under ``copy=None``.
    Raises BufferError: not to be exchanged.
    """
    return _give("tensorflow")(x, _tristate(copy))


def to_cupy(x, *, copy=None):
    """A ``cupy.ndarray`` of the memory of `x`, anything the bridge can import; zero-copy
    where that is on a CUDA device, and a copy to the current device otherwise.

    Raises BufferError: not to be exchanged.
    """
    return _give("cupy")(x, _tristate(copy))


def convert(x, to, *, copy=None):
    """`x` as a tensor of another library, by its name: "torch", "numpy", "jax",
    "tensorflow", "cupy", "at" or "caffe2".

    Raises ValueError: an unknown name; otherwise as the function of that name.
    """
    _tristate(copy)
    if to == "torch":
        return to_torch(x, copy=copy)
    if to == "numpy":
        return to_numpy(x, copy=copy)
    if to == "at" or to == "caffe2":
        return _wrapped(x, to == "caffe2", copy)
    if to not in ("jax", "tensorflow", "cupy"):
        raise ValueError(f"{to!r} is no framework the bridge converts to; it converts to "
                         f"{', '.join(names())}.")
    return _give(to)(x, copy)


def _wrapped(x, caffe2, copy):
    from bridge.caffe2.tensor import Tensor as Caffe2Tensor
    if copy is not True and isinstance(x, Caffe2Tensor if caffe2 else AtTensor):
        return x
    if isinstance(x, Wrapper) and copy is not True:
        return Caffe2Tensor(x) if caffe2 else AtTensor(x)
    if isinstance(x, Wrapper) and not (<Wrapper>x).impl.c_dtype.c_is_pod and caffe2:
        return x.Clone()
    impl = ingest(x, None, copy)
    if not caffe2:
        return wrap(impl)
    if not impl.is_contiguous():
        if copy is False:
            raise BufferError(
                "Caffe2-style tensors are contiguous, and this memory has strides "
                f"{impl.strides().vec()}. Allow a copy with copy=None.")
        return Caffe2Tensor._wrap(wrap(impl).contiguous().unsafeGetTensorImpl())
    return Caffe2Tensor._wrap(impl)
