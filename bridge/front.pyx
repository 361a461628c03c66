# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, binding=False, embedsignature=True, embedsignature.format=clinic
"""The functions of `bridge` itself: arguments are checked here and passed one layer down."""

from cpython.object cimport PyTypeObject

from bridge.at.tensor cimport Tensor as AtTensor
from bridge.at.tensor cimport wrap
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport Py_TYPE, make_immortal
from bridge.c10.reports cimport is_observed, outermost, run_observed, unlikely
from bridge.exchange.import_tensor cimport import_tensor, tristate
from bridge.exchange.numpy cimport import_array, numpy_type
from bridge.exchange.torch_api cimport torch_type
from bridge.exchange.torch_import cimport import_torch
from bridge.single cimport BUILT_IN, exporter_of, numpy_of, torch_of, wrapper_of

from bridge.exchange.registry import register as _register
from bridge.single import convert_one

cdef extern from "Python.h":
    PyTypeObject PyDict_Type
    PyTypeObject PyList_Type
    PyTypeObject PyTuple_Type

# Classes of tensors that live as long as the process and cannot be registered as trees.
cdef dict _single = {}


cdef inline bint _is_tree(object x) except -1:
    """Return whether `x` is a container, whose leaves are converted."""
    cdef PyTypeObject* cls = Py_TYPE(x)
    if cls == <PyTypeObject*>AtTensor or cls == torch_type() or cls == numpy_type():
        return False
    return cls == &PyDict_Type or cls == &PyList_Type or cls == &PyTuple_Type \
        or _is_other_tree(x)


cdef bint _is_other_tree(object x) except -1:
    if isinstance(x, Handle) or type(x) in _single:
        return False
    from bridge.trees.nodes import is_always_single, is_tree
    if is_tree(x):
        return True
    if is_always_single(x):
        _single[type(x)] = True
    return False


cdef object _tree(
    object x, str name, str call, str target, object copy, bint writable=False,
    bint readonly=False,
):
    from bridge.trees.convert import convert_tree
    return convert_tree(x, name, call, target, copy, writable, readonly)

# pyi: from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor


def from_dlpack(
    x: TensorLike, *, device: DeviceLike | None = None, copy: bool | None = None
) -> AtTensor:
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
    if device is None and copy is None:        # as import_tensor, one call less
        if Py_TYPE(x) == torch_type():
            return wrap(import_torch(x, None))
        if Py_TYPE(x) == numpy_type():
            return wrap(import_array(x, None))
    return wrap(import_tensor(x, device, copy))


def asarray(
    x: ArrayLike,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
) -> AtTensor:
    """Return an at.Tensor of `x`: a tensor of any kind, or Python numbers, lists or strings.

    `x`: as in `from_dlpack`, shared as there. Also Python scalars, nested lists, strings and
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


# pyi: overload (x: TensorLike) -> torch.Tensor
def to_torch(
    x: Any, *, copy: bool | None = None, bint writable=False, bint readonly=False
) -> Any:
    """Return a ``torch.Tensor`` of the memory of `x`, anything that `from_dlpack` takes; zero-copy.

    A torch tensor is returned unchanged, and a tree of tensors becomes a tree of torch tensors;
    see `convert`. Read-only memory and negative strides, which torch does not support, are copied
    under ``copy=None``. ``copy=True`` always copies.

    `readonly`: share read-only memory as a tensor that refuses to be written: every operation that
    would write it, or a view of it, raises EnforceNotMet. Memory that may be written becomes a
    plain tensor. `writable`: share read-only memory as a plain tensor; the caller promises not to
    write.

    Raises BufferError: the memory cannot be exchanged, or not without a copy and ``copy=False``.
    ImportError: torch is not installed. TypeError: both `writable` and `readonly`.

    >>> import bridge
    >>> x = bridge.at.zeros(3)
    >>> t = bridge.to_torch(x)
    >>> t.data_ptr() == x.data_ptr(), bridge.to_torch(t) is t
    (True, True)
    """
    return _to_torch(x, copy, writable, readonly)


cdef inline object _to_torch(object x, object copy, bint writable, bint readonly):
    tristate(copy)
    if writable and readonly:
        raise TypeError("Give writable or readonly, not both: one permits to write, one refuses.")
    if _is_tree(x):
        return _tree(x, "torch", "to_torch", "torch.Tensor", copy, writable, readonly)
    if unlikely(is_observed()) and outermost():
        return _observed(x, "torch", "to_torch", "torch.Tensor", copy, writable, readonly)
    return torch_of(x, copy, writable, readonly)


# pyi: overload (x: TensorLike) -> np.ndarray[Any, Any]
def to_numpy(x: Any, *, copy: bool | None = None) -> Any:
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
    return _to_numpy(x, copy)


cdef inline object _to_numpy(object x, object copy):
    tristate(copy)
    if _is_tree(x):
        return _tree(x, "numpy", "to_numpy", "numpy.ndarray", copy)
    if unlikely(is_observed()) and outermost():
        return _observed(x, "numpy", "to_numpy", "numpy.ndarray", copy)
    return numpy_of(x, copy)


# pyi: overload (x: TensorLike) -> jax.Array
def to_jax(x: Any, *, copy: bool | None = None) -> Any:
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
    return _to_library(x, "jax", "to_jax", "jax.Array", copy)


# pyi: overload (x: TensorLike) -> tf.Tensor
def to_tensorflow(x: Any, *, copy: bool | None = None) -> Any:
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
    return _to_library(x, "tensorflow", "to_tensorflow", "tf.Tensor", copy)


# pyi: overload (x: TensorLike) -> cupy.ndarray
def to_cupy(x: Any, *, copy: bool | None = None) -> Any:
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
    return _to_library(x, "cupy", "to_cupy", "cupy.ndarray", copy)


# pyi: overload (x: TensorLike, to: Literal["torch"], *, like: None = None) -> torch.Tensor
# pyi: overload (x: TensorLike, to: Literal["numpy"], *, like: None = None) -> np.ndarray[Any, Any]
# pyi: overload (x: TensorLike, to: Literal["at"], *, like: None = None) -> AtTensor
# pyi: overload (x: TensorLike, to: Literal["caffe2"], *, like: None = None) -> Caffe2Tensor
# pyi: overload (x: Any, to: str, *, like: None = None) -> Any
# pyi: overload (x: Any, to: None = None, *, like: Any) -> Any
def convert(
    x, to=None, *, like=None, copy: bool | None = None, bint writable=False, bint readonly=False
):
    """Return `x`, a tensor or a tree of tensors, as the library named `to`, or as `like`.

    `to`: "torch", "numpy", "at", "caffe2", the name of a library in the table of libraries in
    docs/sharing.md, or one that `register` was called with. Shares or copies as `to_torch`,
    `to_numpy` … do, and as the table says. "caffe2" returns a caffe2.Tensor, which is row-major:
    other strides are copied under ``copy=None``. An object of the library is returned unchanged.
    `like`: a tensor, whose library and device are meant. `writable`, `readonly`: see `to_torch`;
    the other libraries have no use for them.

    A tree is a dict, list or tuple, also of a derived class, a dataclass instance, or a container
    registered with ``torch.utils._pytree`` or ``jax.tree_util``, of any depth. The result has new
    containers of the same types, in the same order. All tensors in it are converted, one that
    occurs twice once; numbers, strings, bytes, buffers, NumPy's scalars and other objects stay. A
    tensor that cannot be converted is the error that it is alone, with its path, and then nothing
    is converted.

    Raises ValueError: another name, or a container that contains itself. BufferError: the library
    cannot hold the memory, or not without a copy and ``copy=False``. ImportError: it is not
    installed. TypeError: a name and `like`, or neither; `like` is not a tensor.

    >>> import bridge
    >>> x = bridge.at.zeros(3)
    >>> bridge.shares_memory(x, bridge.convert(x, "numpy"))
    True
    >>> bridge.convert({"weight": x, "step": 5}, "numpy")
    {'weight': array([0., 0., 0.], dtype=float32), 'step': 5}
    """
    if like is not None or to is None:
        return _convert_like(x, to, like, copy, writable, readonly)
    if to == "torch":
        return _to_torch(x, copy, writable, readonly)
    if to == "numpy":
        return _to_numpy(x, copy)
    tristate(copy)
    if not isinstance(to, str):
        raise ValueError(f"The name of a library is a string such as 'torch', not {to!r}.")
    return _to_library(
        x, to, "convert", f"{to}.Tensor" if to == "at" or to == "caffe2" else to, copy)


cdef object _to_library(object x, str name, str call, str target, object copy):
    """Return `x`, a tensor or a tree, as the library `name`; `call` and `target`: for the log."""
    if _is_tree(x):
        return _tree(x, name, call, target, copy)
    if unlikely(is_observed()) and outermost():
        return _observed(x, name, call, target, copy)
    if name == "at" or name == "caffe2":
        return wrapper_of(x, name == "caffe2", copy)
    return exporter_of(name)(x, copy)


cdef object _convert_like(
    object x, object to, object like, object copy, bint writable, bint readonly,
):
    tristate(copy)
    if to is not None:
        raise TypeError(f"Give the name of a library or like=, not both (here {to!r}).")
    if like is None:
        raise TypeError(
            "Give the name of a library, as in convert(x, 'torch'), or a tensor: like=y.")
    from bridge.trees.like import convert_like
    return convert_like(x, like, copy, writable, readonly)


def register(
    name: str,
    *,
    types: Iterable[type | str] = (),
    importer: Callable[[Any], Any] | None = None,
    exporter: Callable[[AtTensor], Any] | None = None,
) -> None:
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
    if name in BUILT_IN:
        raise TypeError(f"{name!r} is built in, and cannot be replaced.")
    _register(name, types=types, importer=importer, exporter=exporter)


# pyi: overload (x: object, /) -> Explanation
# pyi: overload (x: object, y: object, /, *more: object) -> Explanations
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


def shares_memory(a: object, b: object) -> bool:
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


def audit() -> Audit:
    """Record conversions: ``with bridge.audit() as log:`` logs every conversion in the block.

    The log has ``records`` (each with ``route``, ``copied``, ``nbytes``, ``reason``),
    ``copied_bytes`` and ``shared_bytes``, and prints as a table.

    A conversion takes a tensor to another framework, wrapper, device or type:

    - ``from_dlpack``, ``asarray``, ``convert`` and ``to_torch``, ``to_numpy`` … of `bridge`;
    - on both wrappers ``to_torch``, ``numpy``, ``__array__``, ``__dlpack__``, the buffer protocol,
      ``bytes``, ``__array_interface__``, ``__cuda_array_interface__``, ``__arrow_c_array__``, and
      readers and makers by DLPack's C exchange table; ``at.Tensor(x)``,
      ``caffe2.Tensor(x)``, ``caffe2.Tensor(x, device)``, ``at.tensor(x)``;
    - ``to``, ``cpu``, ``cuda``, ``pin_memory`` of at.Tensor;
    - in workspaces and blobs, to feed and to fetch tensors, and ``FetchTorch``.

    There is one record per conversion that is called, not one for each of its steps, and none if it
    fails. Operations are not conversions, so the copies of ``clone``, ``CopyFrom``, ``x.float()``
    and new tensors of numbers are not listed.

    An outer audit also records conversions of an inner one. Other threads are not recorded, nor are
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


def no_copy() -> NoCopy:
    """Forbid copies: in ``with bridge.no_copy():`` every conversion shares memory or raises.

    A conversion that would copy raises BufferError with the reason, even if the copy was asked for
    (``copy=True``, ``FeedBlob`` of a NumPy array, ``FetchBlob``), and changes nothing. The error
    is also an EnforceNotMet. See `audit` for the conversions, and the threads.

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


# The calls above while bridge.audit or bridge.no_copy is active. They are separate functions, since
# Cython prepares variables for the arguments in every call of the function that uses them.

cdef object _watched_from_dlpack(object x, object device, object copy):
    return run_observed("from_dlpack", x, "at.Tensor", from_dlpack, (x,),
                        {"device": device, "copy": copy})


cdef object _observed(
    object x, str name, str call, str target, object copy, bint writable=False,
    bint readonly=False,
):
    return run_observed(call, x, target, convert_one, (x, name, copy, writable, readonly))


# Threads that call them count no references to them.
make_immortal(from_dlpack)
make_immortal(to_torch)
make_immortal(to_numpy)
make_immortal(convert)
