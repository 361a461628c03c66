# SPDX-License-Identifier: Apache-2.0
"""TensorFlow, whose tensors are immutable, row-major and aligned to 64 bytes.

In: the buffer protocol, which is safe for strings, where ``__dlpack__`` aborts the process, and
faster; what has no buffer (bfloat16, GPUs) through DLPack.

Out: through the function that ``tf.experimental.dlpack.from_dlpack`` calls, which is most of its
time. TensorFlow takes memory of any address and any rank, and aborts the process at the first
operation on what is not aligned to 64 bytes, and at once above 254 dimensions, so neither gets
there (measured with TensorFlow 2.21).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from bridge.at.tensor import Tensor
from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta
from bridge.exchange.buffers import plain_buffer
from bridge.exchange.ingest import by_dlpack, ingest
from bridge.exchange.lend import lent_capsule, row_major
from bridge.exchange.values import text

__all__ = ["bring", "give"]

ALIGNMENT = 64
MAX_NDIM = 254
_EagerTensor = type(tf.constant(0))
# TensorFlow has quantized types over these, and their buffers do not tell.
_MAYBE_QUANTIZED = frozenset(map(TypeMeta.Make, ("int8", "uint8", "int16", "uint16", "int32")))
# Not known to its DLPack. The names are NumPy's, through which they go.
_BY_NUMPY = frozenset(
    (
        *("int2", "uint2", "int4", "uint4", "float4_e2m1fn"),
        *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz"),
        *("float8_e5m2", "float8_e5m2fnuz"),
    )
)


def bring(x: Any, copy: bool | None) -> TensorImpl | None:
    """The TensorImpl of a ``tf.Tensor``, or of the value of a ``tf.Variable``; read-only.

    Strings are copied. Raises BufferError: symbolic, ragged, sparse, quantized, resource and
    variant tensors.
    """
    if type(x) is _EagerTensor:
        if "CPU" in x.backing_device:
            impl = plain_buffer(x)
            if impl is not None and (
                impl.dtype() not in _MAYBE_QUANTIZED or not x.dtype.is_quantized
            ):
                return impl
        return _without_buffer(x, copy)
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


def _value(variable: Any) -> Any:
    try:
        return variable.value()
    except (tf.errors.OpError, ValueError) as error:
        raise BufferError(f"The variable has no value: {error}") from error


def _without_buffer(x: Any, copy: bool | None) -> TensorImpl:
    dtype = x.dtype
    if dtype == tf.string:
        return _strings(x, copy)
    if dtype.is_quantized:
        raise BufferError(
            f"The numbers of a {dtype.name} tensor mean nothing without their range. Use "
            "tf.quantization.dequantize, or tf.bitcast to the integers."
        )
    if dtype in (tf.resource, tf.variant):
        raise BufferError(
            f"A {dtype.name} tensor is a handle and has no memory of numbers. Convert what it "
            "stands for, such as the tf.Variable."
        )
    if dtype.name in _BY_NUMPY:
        if copy is False:
            raise BufferError(
                f"TensorFlow's DLPack does not know {dtype.name}, so it is copied. Allow it with "
                "copy=None."
            )
        return ingest(x.numpy(), None, True)
    return by_dlpack(_Exporter(x), readonly=True)


def _strings(x: Any, copy: bool | None) -> TensorImpl:
    values = x.numpy()
    strings: Tensor = text(values if isinstance(values, bytes) else values.tolist(), None, copy)
    return strings.unsafeGetTensorImpl()


class _Exporter:
    """A tensor as a producer; TensorFlow's own refuses every stream, since it has waited."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __dlpack__(self, stream: Any = None) -> Any:
        return tf.experimental.dlpack.to_dlpack(self.tensor)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def _importer() -> Callable[[Any], Any]:
    """``tf.experimental.dlpack.from_dlpack``, without half of its way down where that is known."""
    try:
        from tensorflow.python.eager import context
        from tensorflow.python.pywrap_tfe import TFE_FromDlpackCapsule as take

        here = context.context
        here().ensure_initialized()
        handle = here()._handle
    except (ImportError, AttributeError):
        handle = None
    if handle is None:
        public: Callable[[Any], Any] = tf.experimental.dlpack.from_dlpack
        return public
    return lambda capsule: take(capsule, here()._handle)


_taken = _importer()


def give(x: Any, copy: bool | None) -> Any:
    """A ``tf.Tensor`` of the memory of `x`; see bridge.to_tensorflow."""
    if isinstance(x, tf.Tensor):
        return tf.identity(x) if copy is True else x
    if isinstance(x, tf.Variable):
        value = _value(x)
        return tf.identity(value) if copy is True else value
    impl = row_major(x, copy, ALIGNMENT)
    dtype = impl.dtype()
    if not dtype.is_pod:
        return _string_tensor(impl, copy)
    if impl.dim() > MAX_NDIM:
        raise BufferError(
            f"TensorFlow's tensors have at most {MAX_NDIM} dimensions, and this has {impl.dim()}."
        )
    try:
        if dtype.name in _BY_NUMPY:
            return _copied(impl, copy)
        return _taken(lent_capsule(impl))
    except (BufferError, MemoryError):
        raise
    except Exception as error:
        raise BufferError(
            f"TensorFlow does not take a tensor of {dtype} on {impl.device()}: {error}"
        ) from error


def _copied(impl: TensorImpl, copy: bool | None) -> Any:
    if copy is False:
        raise BufferError(
            f"TensorFlow's DLPack does not know {impl.dtype()}, so it is copied. Allow it with "
            "copy=None."
        )
    return tf.constant(Tensor._wrap(impl).numpy())


def _string_tensor(impl: TensorImpl, copy: bool | None) -> Any:
    if impl.dtype().name != "string":
        raise BufferError(f"Elements of {impl.dtype()} are no tensor of TensorFlow's.")
    if copy is False:
        raise BufferError("Strings are copied into a tensor. Allow it with copy=None.")
    return tf.constant(Tensor._wrap(impl).tolist(), tf.string, tuple(impl.sizes()))
