# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""TensorFlow, whose tensors are immutable, row-major and aligned to 64 bytes.

``tf.experimental.dlpack`` spends a third of its time above the two functions that it
calls; they are called here, where this TensorFlow has them.

In: not before the type is known, since TensorFlow's DLPack aborts the process on
strings. Out: TensorFlow takes memory of any address and any rank, and aborts the
process at the first operation on what is not aligned to 64 bytes, and at once above
254 dimensions, so neither gets there (measured with TensorFlow 2.21).
"""

from importlib import import_module

from cpython.object cimport PyObject

from bridge.c10.copy cimport copied_since
from bridge.c10.observe cimport copying
from bridge.c10.slots cimport c_method, noargs_function
from bridge.c10.storage cimport READONLY
from bridge.c10.tensor_impl cimport TensorImpl
from bridge.dlpack.abi cimport DL_CPU, has_streams
from bridge.dlpack.capsule cimport take
from bridge.exchange.incoming cimport adopt_managed
from bridge.exchange.ingest cimport bring_quickly_in
from bridge.exchange.lend cimport left_to_copy, lent_capsule, row_major, to_lend
from bridge.exchange.numpy cimport array_in, meet_numpy
from bridge.wrapper cimport Wrapper

from bridge.at.tensor import Tensor
from bridge.c10.observe import ASKED as _ASKED
from bridge.exchange.streams import finish
from bridge.exchange.values import text

# (Cython's own import takes what is marked as absent for a module)
tf = import_module("tensorflow")
numpy = import_module("numpy")
meet_numpy()

cdef extern from "Python.h":
    void _drop_one "Py_DECREF"(PyObject*)

cdef enum:
    ALIGNMENT = 64
    MAX_NDIM = 254
    KINDS = 128

# Not known to its DLPack. The names are NumPy's, through which they go.
cdef object _BY_NUMPY = frozenset((
    "int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"))
# By TensorFlow's number of a type, whether its DLPack takes it.
cdef bint[KINDS] _taken
for _dtype in (tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32,
               tf.uint64, tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64,
               tf.complex128):
    _taken[_dtype.as_datatype_enum] = True

cdef object _eager = type(tf.constant(0))
# TensorFlow's number of a tensor's type, read by its C function; NULL: by the public property.
cdef object _kind_method = getattr(_eager, "_datatype_enum", None)
cdef c_method _kind = noargs_function(<PyObject*>_kind_method)
cdef object _to_capsule = tf.experimental.dlpack.to_dlpack
cdef object _from_capsule = tf.experimental.dlpack.from_dlpack
# Its context, which the function below needs the handle of; None: use the public function.
cdef object _context = None
cdef object _last_context = None
cdef object _handle = None
try:
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager.context import context as _context
    _context().ensure_initialized()
    _context()._handle
    _to_capsule = pywrap_tfe.TFE_ToDlpackCapsule
    _from_capsule = pywrap_tfe.TFE_FromDlpackCapsule
except (ImportError, AttributeError):
    _context = None
    _from_capsule = tf.experimental.dlpack.from_dlpack


cdef int _raise_pending() except -1:
    return -1                   # with the exception that a C function has set


cdef object _imported(object capsule):
    global _last_context, _handle
    if _context is None:
        return _from_capsule(capsule)
    now = _context()
    if now is not _last_context:
        now.ensure_initialized()
        _handle = now._handle
        _last_context = now
    return _from_capsule(capsule, _handle)


cdef int _kind_of(object tensor) except? -1:
    cdef PyObject* number
    cdef int kind
    if _kind == NULL:
        return tensor.dtype.as_datatype_enum
    number = _kind(<PyObject*>tensor, NULL)
    if number == NULL:
        _raise_pending()
    kind = <object>number
    _drop_one(number)
    return kind


cdef TensorImpl _shared(object x):
    """The TensorImpl of an eager tensor by DLPack; None where that does not know its type."""
    cdef int kind = _kind_of(x)
    if 0 <= kind < KINDS and _taken[kind]:
        return adopt_managed(take(_to_capsule(x)), READONLY, None)
    return None


bring_quickly_in(_eager, _shared)


def bring(x, copy):
    """The TensorImpl of a ``tf.Tensor``, or of the value of a ``tf.Variable``; read-only.

    Strings are copied. Raises BufferError: symbolic, ragged, sparse, quantized, resource
    and variant tensors.
    """
    cdef TensorImpl impl
    if type(x) is _eager:
        impl = _shared(x)
        return _special(x, copy) if impl is None else impl
    if isinstance(x, tf.Variable):
        return bring(_value(x), copy)
    if isinstance(x, tf.Tensor):
        raise BufferError(
            "Inside tf.function, and in graphs, a tensor stands for values that there are not yet. "
            "Convert outside of them, or call out with tf.py_function."
        )
    if isinstance(x, tf.RaggedTensor):
        raise BufferError("A ragged tensor is several. Use to_tensor(), or flat_values.")
    if isinstance(x, tf.SparseTensor):
        raise BufferError("A sparse tensor is not one block of memory. Use tf.sparse.to_dense.")
    if isinstance(x, tf.IndexedSlices):
        raise BufferError(
            "IndexedSlices are not one block of memory. Use tf.convert_to_tensor, or values."
        )
    return None


def _value(variable):
    try:
        return variable.value()
    except Exception as error:
        raise BufferError(f"The variable has no value here: {error}") from error


def _special(x, copy):
    """What DLPack does not share: narrow numbers, shared by NumPy; strings, copied; the rest
    refused."""
    dtype = x.dtype
    if dtype == tf.string:
        strings = x.numpy()
        strings = strings if isinstance(strings, bytes) else strings.tolist()
        return text(strings, None, copy).unsafeGetTensorImpl()
    if dtype.is_quantized:
        raise BufferError(
            f"The numbers of a {dtype.name} tensor mean nothing without their range. Use "
            "tf.quantization.dequantize, or tf.bitcast to the integers.")
    if dtype.name not in _BY_NUMPY:
        raise BufferError(
            f"A {dtype.name} tensor is a handle and has no memory of numbers. Convert what it "
            "stands for, such as the tf.Variable.")
    return _by_array(x, copy)


cdef TensorImpl _by_array(x, copy):
    """By NumPy's arrays, which share the memory of host tensors with what made them."""
    cdef TensorImpl impl
    row = tf.reshape(x, (-1,))      # of the same memory; of a scalar there is no array
    array, again = numpy.asarray(row), numpy.asarray(row)
    impl = array_in(array.reshape(x.shape), None)
    if array.ctypes.data == again.ctypes.data:
        impl.storage.flags |= READONLY
        return impl
    if copy is False:
        raise BufferError(
            f"TensorFlow's DLPack does not know {x.dtype.name}, so it is copied. Allow it with "
            "copy=None.")
    return copied_since(
        impl, f"TensorFlow's DLPack does not know {x.dtype.name}", "from_dlpack")


def give(x, copy):
    """A ``tf.Tensor`` of the memory of `x`; see bridge.to_tensorflow."""
    cdef TensorImpl impl
    if not isinstance(x, Wrapper):
        if isinstance(x, tf.Variable):
            x = _value(x)
        if isinstance(x, tf.Tensor):
            if copy is not True:
                return x
            if type(x) is not _eager:
                return _again(x)
            # (of an eager tensor that would share the memory)
    impl = to_lend(x, copy)
    if not impl.c_dtype.c_is_pod:
        return _string_tensor(impl, copy)
    if impl.ndim > MAX_NDIM:
        raise BufferError(
            f"TensorFlow's tensors have at most {MAX_NDIM} dimensions, and this has {impl.ndim}.")
    if impl.c_dtype.name in _BY_NUMPY:
        return _copied(impl, copy)
    impl = row_major(impl, left_to_copy(x, impl, copy), ALIGNMENT)
    if has_streams(impl.storage.device_type):
        finish(impl.storage.device_index)   # TensorFlow is told no stream, and has its own
    capsule = lent_capsule(impl, None if impl.storage.device_type == DL_CPU else -1)
    try:
        return _imported(capsule)
    except Exception as error:
        raise BufferError(
            f"TensorFlow does not take a tensor of {impl.c_dtype} on {impl.device()}: {error}. "
            "Convert it first, as with bridge.asarray(x, dtype='float32', device='cpu')."
        ) from error


def _copied(TensorImpl impl, copy):
    if copy is False and impl.c_numel:
        raise BufferError(
            f"TensorFlow's DLPack does not know {impl.c_dtype}, so it is copied. Allow it with "
            "copy=None.")
    if impl.c_numel:
        copying(impl.c_numel * impl.c_dtype.itemsize,
                f"TensorFlow's DLPack does not know {impl.c_dtype}")
    return tf.constant(Tensor._wrap(impl).numpy())


def _again(tensor):
    copying((tensor.shape.num_elements() or 0) * tensor.dtype.size, _ASKED)
    return tf.identity(tensor)


def _string_tensor(TensorImpl impl, copy):
    if impl.c_dtype.name != "string":
        raise BufferError(f"Elements of {impl.c_dtype} are no tensor of TensorFlow's.")
    if copy is False:
        raise BufferError("Strings are copied into a tensor. Allow it with copy=None.")
    copying(impl.c_numel * impl.c_dtype.itemsize, "strings are copied into a tensor")
    return tf.constant(Tensor._wrap(impl).tolist(), tf.string, tuple(impl.sizes()))
