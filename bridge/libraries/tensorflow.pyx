# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""TensorFlow, whose tensors are immutable, row-major and aligned to 64 bytes.

``tf.experimental.dlpack`` spends a third of its time outside of the two functions that it wraps;
they are called directly if this TensorFlow has them.

Import: the type is checked first, since TensorFlow's DLPack aborts the process on strings.
Export: TensorFlow accepts memory of any alignment and any number of dimensions, but aborts the
process at the first operation on memory that is not aligned to 64 bytes, and at once above 254
dimensions, so such memory is copied or refused (TensorFlow 2.21).
"""

from importlib import import_module

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from bridge.c10.copy cimport reported_copy, require_copy
from bridge.c10.handle cimport Handle
from bridge.c10.python_api cimport owned
from bridge.c10.reports cimport report_copy
from bridge.c10.retained cimport retained_data
from bridge.c10.storage cimport BORROWED, READONLY
from bridge.c10.tensor_impl cimport (
    CONTIGUOUS,
    TensorImpl,
    device_index_of,
    device_type_of,
    storage_flags,
)
from bridge.dlpack.abi cimport DL_CPU, DL_CUDA, DL_ROCM, has_streams
from bridge.dlpack.capsule cimport ManagedTensor, consume_capsule
from bridge.exchange.conversion cimport export_source, remaining_copy, row_major
from bridge.exchange.dlpack_capsule cimport immutable_capsule
from bridge.exchange.dlpack_import cimport adopt_managed
from bridge.exchange.protocols cimport register_fast_import
from bridge.c10.slots cimport c_method, noargs_function
from bridge.exchange.numpy cimport export_array, import_array, numpy_loaded
from bridge.exchange.torch_api cimport is_torch_tensor
from bridge.exchange.torch_storage cimport retain_imported

from bridge.c10.errors import EnforceBufferError
from bridge.c10.reports import ASKED as _ASKED
from bridge.c10.raw_parts import items_of
from bridge.exchange.refusal import reason_of
from bridge.exchange.registry import register
from bridge.exchange.streams import synchronise_host
from bridge.exchange.nested_strings import import_strings

# (Cython's import statement accepts None in sys.modules, which marks a module as absent)
tf = import_module("tensorflow")
numpy = import_module("numpy")
numpy_loaded()

cdef enum:
    ALIGNMENT = 64
    MAX_NDIM = 254
    KINDS = 128

# Types that its DLPack does not know, by NumPy's names: they are converted through NumPy.
cdef object _BY_NUMPY = frozenset((
    "int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"))
# Whether TensorFlow's DLPack knows a type, by TensorFlow's number of it.
cdef bint[KINDS] _taken
for _dtype in (tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32,
               tf.uint64, tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.complex64,
               tf.complex128):
    _taken[_dtype.as_datatype_enum] = True

# (a constant would be symbolic where the first tensor is met inside a tf.function)
cdef object _eager = tf.__internal__.EagerTensor
# The C function that returns the number of a tensor's type; NULL: use the public property.
cdef object _kind_method = getattr(_eager, "_datatype_enum", None)
cdef c_method _kind = noargs_function(<PyObject*>_kind_method)
cdef object _to_capsule = tf.experimental.dlpack.to_dlpack
cdef object _from_capsule = tf.experimental.dlpack.from_dlpack
# TensorFlow's context, whose handle TFE_FromDlpackCapsule takes; None: use the public function.
cdef object _context = None
cdef dict _module = {}
cdef object _last_context = None
cdef object _handle = None
try:
    from tensorflow.python import pywrap_tfe
    from tensorflow.python.eager import context as _eager_context
    _context = _eager_context.context
    _module = vars(_eager_context)
    _context().ensure_initialized()
    _context()._handle
    _to_capsule = pywrap_tfe.TFE_ToDlpackCapsule
    _from_capsule = pywrap_tfe.TFE_FromDlpackCapsule
except (ImportError, AttributeError):
    _context = None
    _from_capsule = tf.experimental.dlpack.from_dlpack


cdef object _from_capsule_in_context(object capsule):
    global _last_context, _handle
    if _context is None:
        return _from_capsule(capsule)
    now = _module.get("_context")       # the result of context(), in less time
    if now is None or now is not _last_context:
        now = _context()
        now.ensure_initialized()
        _handle = now._handle
        _last_context = now
    return _from_capsule(capsule, _handle)


cdef int _kind_of(object tensor) except? -1:
    if _kind == NULL:
        return tensor.dtype.as_datatype_enum
    return owned(_kind(<PyObject*>tensor, NULL))


cdef TensorImpl _shared(object x):
    """Return the TensorImpl of an eager tensor by DLPack; None if its type needs another way."""
    cdef int kind = _kind_of(x)
    cdef ManagedTensor managed
    if 0 <= kind < KINDS and _taken[kind]:
        managed = consume_capsule(_to_capsule(x))
        managed.source = _eager
        return adopt_managed(managed, READONLY, None)
    return None


register_fast_import(_eager, _shared)


def import_(x: Any, copy: bool | None) -> TensorImpl | None:
    """Return the TensorImpl of a ``tf.Tensor``, or of the value of a ``tf.Variable``; read-only.

    Strings are copied. Raises BufferError: symbolic, ragged, sparse, quantized, resource
    and variant tensors.
    """
    cdef TensorImpl impl
    if type(x) is _eager:
        impl = _shared(x)
        return _special(x, copy) if impl is None else impl
    if isinstance(x, tf.Variable):
        return import_(_value(x), copy)
    if isinstance(x, tf.Tensor):
        raise BufferError(
            "Inside tf.function, and in graphs, a tensor is symbolic: it has no values yet. "
            "Convert outside of them, or call out with tf.py_function."
        )
    if isinstance(x, tf.RaggedTensor):
        raise BufferError(
            "A ragged tensor is not one block of memory. Use to_tensor(), or flat_values.")
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
        raise BufferError(f"The variable has no value here: {reason_of(error)}") from error


def _special(x, copy):
    """Import types that DLPack lacks: narrow numbers by NumPy, strings as a copy; refuse others."""
    dtype = x.dtype
    if dtype == tf.string:
        strings = x.numpy()
        strings = strings if isinstance(strings, bytes) else strings.tolist()
        return import_strings(strings, copy)
    if dtype.is_quantized:
        raise BufferError(
            f"The numbers of a {dtype.name} tensor mean nothing without their range. Use "
            "tf.quantization.dequantize, or tf.bitcast to the integers.")
    if dtype.name not in _BY_NUMPY:
        raise BufferError(
            f"A {dtype.name} tensor is a handle and has no elements. Convert what it refers to, "
            "such as the tf.Variable.")
    return _by_array(x, copy)


cdef TensorImpl _by_array(x, copy):
    """Import through a NumPy array, which shares the memory of a host tensor."""
    cdef TensorImpl impl
    row = tf.reshape(x, (-1,))      # of the same memory; NumPy shares no scalars
    array, again = numpy.asarray(row), numpy.asarray(row)
    impl = import_array(array.reshape(x.shape), None)
    if array.ctypes.data == again.ctypes.data:
        impl.storage.flags |= READONLY
        return impl
    return reported_copy(
        impl, f"TensorFlow's DLPack does not know {x.dtype.name}", "from_dlpack", copy)


def export(x: Any, copy: bool | None) -> Any:
    """Return a ``tf.Tensor`` of the memory of `x`; see bridge.to_tensorflow."""
    cdef TensorImpl impl
    # (TensorFlow's classes take microseconds to say that they have nothing to do with an object)
    if not isinstance(x, Handle) and not is_torch_tensor(x):
        if isinstance(x, tf.Variable):
            x = _value(x)
        if isinstance(x, tf.Tensor):
            if copy is not True:
                return x
            if type(x) is not _eager:
                return _identity(x)
            # (tf.identity of an eager tensor would share the memory)
    impl = export_source(x, copy)
    if not impl.c_dtype.c_is_pod:
        return _string_tensor(impl, copy)
    if impl.ndim > MAX_NDIM:
        raise BufferError(
            f"TensorFlow's tensors have at most {MAX_NDIM} dimensions, and this has {impl.ndim}.")
    if impl.c_dtype.name in _BY_NUMPY:
        return _copied(impl, copy)
    if device_type_of(impl) != DL_CPU:
        _require_device(impl)
    if copy is not True and storage_flags(impl) & BORROWED and _fits(impl):
        # at first, since every access before it is checked
        if impl.storage.ctx is x and impl.storage.c_nbytes:
            retain_imported(impl.storage, x)
        else:
            retained_data(impl, "to_tensorflow")
    impl = row_major(impl, remaining_copy(x, impl, copy), ALIGNMENT)
    if has_streams(device_type_of(impl)):
        synchronise_host(device_index_of(impl))     # TensorFlow works on a stream of its own
    capsule = immutable_capsule(impl, None if device_type_of(impl) == DL_CPU else -1)
    try:
        return _from_capsule_in_context(capsule)
    except Exception as error:
        raise BufferError(
            f"TensorFlow does not take a tensor of {impl.c_dtype} on {impl.device()}: "
            f"{reason_of(error)}. "
            "Convert it first, as with bridge.asarray(x, dtype='float32', device='cpu')."
        ) from error


cdef int _require_device(TensorImpl impl) except -1:
    """Raise BufferError unless TensorFlow has the device; it would abort (TensorFlow 2.21)."""
    count = 0
    if device_type_of(impl) == DL_CUDA or device_type_of(impl) == DL_ROCM:
        count = len(tf.config.list_physical_devices("GPU"))
    if device_index_of(impl) >= count:
        raise BufferError(
            f"TensorFlow has no such device here: {impl.device()} (it sees {count} GPUs). Copy the "
            "tensor to the host first, as with bridge.from_dlpack(x, device='cpu').")
    return 0


cdef bint _fits(TensorImpl impl) noexcept:
    """Return whether the memory will be shared, if it is still where it was imported."""
    first = <uintptr_t>impl.storage.data + <uintptr_t>(impl.offset * impl.c_dtype.itemsize)
    return impl.flags & CONTIGUOUS and first % ALIGNMENT == 0


def _copied(TensorImpl impl, copy):
    if impl.c_numel:
        require_copy(copy, impl.c_numel * impl.c_dtype.itemsize,
                     f"TensorFlow's DLPack does not know {impl.c_dtype}")
    return tf.constant(export_array(impl, "to_tensorflow"))


def _identity(tensor):
    report_copy((tensor.shape.num_elements() or 0) * tensor.dtype.size, _ASKED)
    return tf.identity(tensor)


def _string_tensor(TensorImpl impl, copy):
    if impl.c_dtype.name != "string":
        raise BufferError(f"TensorFlow has no tensors of {impl.c_dtype}.")
    require_copy(copy, impl.c_numel * impl.c_dtype.itemsize, "strings are copied into a tensor")
    if not impl.flags & CONTIGUOUS:
        raise EnforceBufferError(
            "A tensor of strings is converted from contiguous memory only.", "to_tensorflow",
            condition="is_contiguous()")
    return tf.constant(items_of(impl), tf.string, tuple(impl.sizes()))


register("tensorflow", types=("tensorflow.Tensor", "tensorflow.*"), importer=import_,
         exporter=export, import_takes_copy=True, export_takes_copy=True)
