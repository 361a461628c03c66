# SPDX-License-Identifier: Apache-2.0
"""make_tensor_proto: write a tensor as the bytes of a TensorProto."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bridge.c10.errors import EnforceValueError
from bridge.c10.raw_parts import byte_view, items_of
from bridge.caffe2.blobs.string_arrays import STRING_KINDS, encoded_elements
from bridge.front import asarray
from bridge.python_values import is_numbers
from bridge.tf.element_types import BY_NAME, STRING, Row
from bridge.tf.message import MAX_NBYTES
from bridge.tf.shape_proto import TensorProtoError, TensorShapeProto
from bridge.wire.encoding import joined, length_head, packed_nbytes, tagged, varint_field
from bridge.wrapper import Wrapper

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_DTYPE, _SHAPE, _CONTENT = 1, 2, 4
# Types that TensorFlow always writes to their `*_val` field, never as tensor_content.
_NEVER_CONTENT = frozenset(
    ("bool", "uint16", "complex64", "complex128", "int4", "uint4", "int2", "uint2")
)
# Types that TensorFlow's Python always writes as tensor_content, even a single value.
_ONLY_CONTENT = frozenset(("float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"))


def make_tensor_proto(x: Any) -> bytes:
    """Return the bytes of a TensorProto with the elements, type and shape of `x`; a copy.

    `x` is any tensor that the bridge can import, a NumPy array (of strings too), a Python number,
    ``str`` or ``bytes``, or a nested list. Python floats become float32 and Python ints become
    int32 if all fit, as in TensorFlow. The result equals TensorFlow's
    ``tf.make_tensor_proto(x).SerializeToString()`` byte for byte, except that foreign byte order,
    which TensorFlow writes unchanged, becomes native.

    Raises
    ------
    TensorProtoError, which is an EnforceNotMet, a BufferError and a ValueError: TensorFlow lacks
        the element type, or the elements take 2 GiB or more.
    BufferError, TypeError, ValueError: as bridge.asarray. EnforceNotMet, also a ValueError: a
        Python float is out of the range of float32.

    Follows tf.make_tensor_proto, tensorflow/python/framework/tensor_util.py, TensorFlow 2.21.

    >>> from bridge import tf
    >>> tf.make_tensor_proto([1, 2]).hex()
    '080312041202080222080100000002000000'
    """
    if isinstance(x, np.ndarray) and x.dtype.kind in STRING_KINDS:
        return _strings(x.shape, encoded_elements(x))
    # asarray does not accept wrappers of strings, whose elements are not plain memory.
    tensor = x if _is_strings(x) else asarray(x)
    if tensor.dtype().name == "string":
        impl = tensor.unsafeGetTensorImpl()
        return _strings(tuple(tensor.sizes()), items_of(impl))
    if is_numbers(x) and not isinstance(x, np.generic):
        tensor = asarray(_narrowed(tensor.numpy()))
    return _numbers(tensor)


def _is_strings(x: Any) -> bool:
    """Return whether `x` is an at.Tensor or caffe2.Tensor of strings."""
    return (
        isinstance(x, Wrapper)
        and x.defined()
        and x.unsafeGetTensorImpl().dtype().name == STRING.name
    )


def _narrowed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Convert float64 to float32, and int64 to int32 if all fit, as TensorFlow does for Python."""
    if array.dtype == np.float64:
        with np.errstate(over="ignore"):
            single = array.astype(np.float32)
        if not np.array_equal(np.isinf(single), np.isinf(array)):
            raise EnforceValueError(
                "Python floats become float32, and one is out of its range. Pass a NumPy array of "
                "float64.",
                "make_tensor_proto",
            )
        return single
    if array.dtype == np.int64:
        narrow = array.astype(np.int32)
        return narrow if np.array_equal(narrow, array) else array
    return array


def _numbers(tensor: Any) -> bytes:
    row = BY_NAME.get(tensor.dtype().name)
    if row is None:
        raise TensorProtoError(
            f"TensorFlow has no element type for {tensor.dtype()}. Convert the tensor with to(T).",
            "make_tensor_proto",
        )
    numel, sizes = tensor.numel(), tuple(tensor.sizes())
    # Checked before anything large is allocated.
    _require_room(numel * tensor.itemsize())
    data = memoryview(byte_view(tensor.cpu().unsafeGetTensorImpl()))
    content = row.name in _ONLY_CONTENT or (numel > 1 and row.name not in _NEVER_CONTENT)
    if numel == 0:
        parts: list[Any] = []
    elif content:
        parts = [length_head(_CONTENT, len(data)), data]
    else:
        packed = _packed(data, row)
        parts = [length_head(row.field, len(packed)), packed]
    return _message(row, sizes, parts)


def _packed(data: memoryview, row: Row) -> Any:
    """Return the elements as the body of a packed repeated field."""
    if row.coding != "varint":
        return data
    values = np.frombuffer(data, row.stored)
    if row.narrow:
        # Sign-extend the bits of the element.
        values = (values + row.low & row.high - row.low) + row.low if row.low else values
    if values.size and values.min() >= 0 and values.max() < 0x80:
        return values.astype(np.uint8).tobytes()
    # protobuf writes int64 and uint64 of the same bits alike.
    impl = asarray(values.astype(np.int64)).unsafeGetTensorImpl()
    numel = len(values)
    return joined(b"", impl, 0, numel, packed_nbytes(impl, 0, numel), b"")


def _strings(sizes: Sequence[int], items: Iterable[bytes]) -> bytes:
    return _message(STRING, sizes, [tagged(STRING.field, item) for item in items])


def _message(row: Row, sizes: Sequence[int], parts: list[Any]) -> bytes:
    _require_room(sum(map(len, parts)))
    shape = TensorShapeProto.of(sizes)
    return b"".join([varint_field(_DTYPE, row.number), tagged(_SHAPE, shape), *parts])


def _require_room(nbytes: int) -> None:
    if nbytes > MAX_NBYTES:
        raise TensorProtoError(
            f"The elements take {nbytes} bytes; a message has at most {MAX_NBYTES}.",
            "make_tensor_proto",
        )
