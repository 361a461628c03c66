# SPDX-License-Identifier: Apache-2.0
"""Against the TensorFlow that is installed: shapes and messages."""

from typing import Any

import numpy as np
import pytest

from bridge import tf
from bridge.tf.element_types import ROWS
from tests.helpers.ids import shown
from tests.tf.golden import GOLDEN, Recorded

tensorflow = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

TensorProto = type(tensorflow.make_tensor_proto(0))
DIMS = [[], [2, 3], [0], [None, 7], [300, 2**40], [None, None], [1], None, 5]
LOOKS = {
    "rank": lambda s: s.rank,
    "ndims": lambda s: s.ndims,
    "list": lambda s: s.as_list(),
    "num_elements": lambda s: s.num_elements(),
    "defined": lambda s: s.is_fully_defined(),
    "len": len,
    "iter": list,
    "bool": bool,
    "repr": repr,
    "str": str,
    "hash": hash,
    "first": lambda s: s[0],
    "last": lambda s: s[-1],
    "eighth": lambda s: s[7],
    "tail": lambda s: s[1:],
    "head": lambda s: s[:-1],
    "two": lambda s: s[1:3],
    "steps": lambda s: s[::2],
    "message": lambda s: s.as_proto().SerializeToString(),
    "sizes": lambda s: [dim.size for dim in s.as_proto().dim],
    "unknown rank": lambda s: s.as_proto().unknown_rank,
}
PAIRS = {
    "equal": lambda a, b: a == b,
    "compatible": lambda a, b: a.is_compatible_with(b),
    "merged": lambda a, b: a.merge_with(b),
    "concatenated": lambda a, b: a.concatenate(b),
    "sum": lambda a, b: a + b,
    "sum from the right": lambda a, b: b + a,
}


def outcome(look: Any, *shapes: Any) -> Any:
    """What a look gives, shapes as text; or which kind of error."""
    try:
        seen = look(*shapes)
    except (ValueError, IndexError, TypeError) as error:
        return next(kind for kind in (ValueError, IndexError, TypeError) if isinstance(error, kind))
    return repr(seen) if type(seen).__name__ == "TensorShape" else seen


@pytest.mark.parametrize("dims", DIMS, ids=str)
@pytest.mark.parametrize("look", LOOKS)
def test_shapes_show_the_same(look: str, dims: Any) -> None:
    theirs = outcome(LOOKS[look], tensorflow.TensorShape(dims))
    assert outcome(LOOKS[look], tf.TensorShape(dims)) == theirs


@pytest.mark.parametrize("other", DIMS, ids=str)
@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_of_shapes_are_the_same(pair: str, other: Any) -> None:
    for dims in DIMS:
        theirs = outcome(PAIRS[pair], tensorflow.TensorShape(dims), tensorflow.TensorShape(other))
        assert outcome(PAIRS[pair], tf.TensorShape(dims), tf.TensorShape(other)) == theirs
        if pair in ("equal", "compatible", "merged", "concatenated"):
            mixed = outcome(PAIRS[pair], tf.TensorShape(dims), tensorflow.TensorShape(other))
            assert mixed == theirs


@pytest.mark.parametrize("given", ["23", [1.5], -1, [2, -1], [[2]], object()], ids=shown)
def test_objects_that_make_no_shape_are_refused_as_by_tensorflow(given: Any) -> None:
    assert outcome(tf.TensorShape, given) == outcome(tensorflow.TensorShape, given)


@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_shapes_convert_to_tensorflow_and_back(dims: Any) -> None:
    theirs, ours = tensorflow.TensorShape(dims), tf.TensorShape(dims)
    assert tf.TensorShape(theirs) == ours
    assert tf.TensorShape(theirs.as_proto()) == ours
    assert tf.TensorShape(theirs.as_proto().SerializeToString()) == ours
    assert ours.as_proto() == theirs.as_proto()
    assert type(theirs.as_proto()).FromString(ours.as_proto()) == theirs.as_proto()
    if dims is None:
        with pytest.raises((TypeError, ValueError)):
            tensorflow.TensorShape(ours.as_proto())
    else:
        assert tensorflow.TensorShape(ours) == theirs
        assert tensorflow.TensorShape(ours.as_proto()) == theirs


def test_dimensions_of_tensorflow_1_make_a_shape() -> None:
    sizes = tensorflow.TensorShape([2, None]).dims
    assert tf.TensorShape(sizes) == [2, None]


@pytest.mark.parametrize("row", [r for r in GOLDEN if r.by == "python"], ids=str)
def test_tensorflow_writes_the_bytes_of_the_golden_file(row: Recorded) -> None:
    proto = TensorProto.FromString(row.message)
    assert proto.SerializeToString(deterministic=True) == row.message
    x = tf.from_tensor_proto(proto)
    array = tensorflow.make_ndarray(proto) if readable(proto) else None
    if array is not None:
        assert tensorflow.make_tensor_proto(array).SerializeToString() == row.message
        assert tf.make_tensor_proto(array) == row.message
        if row.dtype == "string":
            assert x.tolist() == array.tolist()


def readable(proto: Any) -> bool:
    """Whether TensorFlow's Python reads and writes the message: not some empty ones of float8."""
    return bool(proto.tensor_content) or proto.dtype not in (26, 27, 28)


@pytest.mark.parametrize("sizes", [(), (1,), (3, 4), (0, 2), (300,)], ids=str)
@pytest.mark.parametrize("name", [row.name for row in ROWS if row.name != "string"])
def test_arrays_go_through_tensorflow_and_come_back(name: str, sizes: tuple[int, ...]) -> None:
    dtype = tensorflow.dtypes.as_dtype(name)
    array = (np.arange(int(np.prod(sizes))) % 3).reshape(sizes).astype(dtype.as_numpy_dtype)
    message = tf.make_tensor_proto(array)
    proto = TensorProto.FromString(message)
    for x in (tf.from_tensor_proto(proto), tf.from_tensor_proto(message)):
        assert x.dtype().name == name
        assert x.numpy().tobytes() == array.tobytes()
    if readable(proto):
        theirs = tensorflow.make_ndarray(proto)
        assert theirs.dtype == array.dtype
        assert theirs.tobytes() == array.tobytes()


def test_the_content_of_a_message_object_is_read_only() -> None:
    proto = tensorflow.make_tensor_proto(np.arange(6.0).reshape(2, 3))
    x = tf.from_tensor_proto(proto)
    assert x.readonly
    assert x.data_ptr() % 8 == 0
    proto.tensor_content = b""
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tf.from_tensor_proto(proto).tolist() == [[0, 0, 0], [0, 0, 0]]
