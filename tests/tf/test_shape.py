# SPDX-License-Identifier: Apache-2.0
"""`tf.TensorShape`: sizes known and unknown, and the message of them."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from bridge import at, tf
from bridge.c10 import EnforceNotMet
from tests.helpers.ids import shown
from tests.tf.messages import bytes_field, fixed32, group, varint

KNOWN = tf.TensorShape([2, 3])
PARTLY = tf.TensorShape([2, None])
UNKNOWN = tf.TensorShape(None)
SCALAR = tf.TensorShape([])


@pytest.mark.parametrize(
    ("given", "dims"),
    [
        ([2, 3], [2, 3]),
        ((2, None), [2, None]),
        ([], []),
        (None, None),
        (5, [5]),
        (range(3), [0, 1, 2]),
        (np.array([2, 3]), [2, 3]),
        (np.int64(4), [4]),
        ([np.int32(2), None], [2, None]),
        (torch.Size([2, 3]), [2, 3]),
        (at.zeros(2, 3).sizes(), [2, 3]),
        (iter([2, 3]), [2, 3]),
        (KNOWN, [2, 3]),
        (UNKNOWN, None),
        ([2**62, 2**62], [2**62, 2**62]),
    ],
    ids=shown,
)
def test_a_shape_is_made_from_sizes_messages_and_shapes(
    given: Any, dims: list[int | None] | None
) -> None:
    shape = tf.TensorShape(given)
    assert shape.dims == dims
    assert shape.rank == shape.ndims == (None if dims is None else len(dims))
    assert shape == tf.TensorShape(dims)


@pytest.mark.parametrize("given", [[2, -1], -2, [-1]], ids=str)
def test_a_negative_size_is_refused(given: Any) -> None:
    with pytest.raises(ValueError, match="negative") as caught:
        tf.TensorShape(given)
    assert isinstance(caught.value, EnforceNotMet)


@pytest.mark.parametrize("given", [[1.5], "23", 2.0, [[2]], object(), [b"a"]], ids=shown)
def test_objects_that_make_no_shape_are_refused(given: Any) -> None:
    with pytest.raises(TypeError, match=r"not a size|dimension|interpreted") as caught:
        tf.TensorShape(given)
    assert isinstance(caught.value, EnforceNotMet)


def test_num_elements_is_none_where_a_size_is_unknown() -> None:
    assert KNOWN.num_elements() == 6
    assert SCALAR.num_elements() == 1
    assert tf.TensorShape([0, 5]).num_elements() == 0
    assert tf.TensorShape([2**40, 2**40]).num_elements() == 2**80
    assert PARTLY.num_elements() is None
    assert UNKNOWN.num_elements() is None


def test_a_shape_says_whether_it_is_fully_defined() -> None:
    assert KNOWN.is_fully_defined()
    assert SCALAR.is_fully_defined()
    assert not PARTLY.is_fully_defined()
    assert not UNKNOWN.is_fully_defined()
    assert bool(SCALAR)
    assert not UNKNOWN


def test_a_shape_is_a_sequence_of_sizes() -> None:
    assert len(PARTLY) == 2
    assert list(PARTLY) == PARTLY.as_list() == [2, None]
    assert KNOWN[0] == 2
    assert KNOWN[-1] == 3
    assert PARTLY[1] is None
    assert KNOWN[1:] == [3]
    assert isinstance(KNOWN[1:], tf.TensorShape)
    assert np.empty(KNOWN).shape == (2, 3)
    with pytest.raises(IndexError):
        KNOWN[2]


def test_a_shape_of_unknown_rank_has_unknown_sizes_and_no_length() -> None:
    for look in (len, list, tf.TensorShape.as_list):
        with pytest.raises(ValueError, match="unknown"):
            look(UNKNOWN)
    assert UNKNOWN[7] is None
    assert UNKNOWN[1:3] == [None, None]
    assert UNKNOWN[2:] == UNKNOWN[:-1] == UNKNOWN
    with pytest.raises(ValueError, match="Steps"):
        UNKNOWN[::2]


def test_dims_are_a_copy() -> None:
    dims = KNOWN.dims
    assert dims is not None
    dims[0] = 9
    assert KNOWN == [2, 3]


def test_shapes_equal_sequences_of_the_same_sizes() -> None:
    assert KNOWN == (2, 3)
    assert KNOWN != [3, 2]
    assert PARTLY == [2, None]
    assert PARTLY != KNOWN
    assert tf.TensorShape(UNKNOWN) == UNKNOWN
    assert UNKNOWN != SCALAR
    assert KNOWN != "shape"
    assert hash(KNOWN) == hash(tf.TensorShape((2, 3)))


def test_unknown_sizes_are_compatible_with_any() -> None:
    assert PARTLY.is_compatible_with([2, 3])
    assert PARTLY.is_compatible_with([None, 4])
    assert not PARTLY.is_compatible_with([3, 3])
    assert not PARTLY.is_compatible_with([2])
    assert UNKNOWN.is_compatible_with(KNOWN)
    assert KNOWN.is_compatible_with(None)


def test_merge_fills_unknown_sizes() -> None:
    assert PARTLY.merge_with([None, 4]) == [2, 4]
    assert UNKNOWN.merge_with(PARTLY) == PARTLY
    assert PARTLY.merge_with(None) == PARTLY
    for other in ([3, 3], [2]):
        with pytest.raises(ValueError, match="not compatible"):
            PARTLY.merge_with(other)


def test_concatenate_joins_shapes() -> None:
    assert KNOWN.concatenate([None]) == [2, 3, None]
    assert KNOWN + PARTLY == [2, 3, 2, None]
    before: object = [1]
    assert before + KNOWN == [1, 2, 3]
    assert KNOWN + None == UNKNOWN
    assert UNKNOWN.concatenate(KNOWN) == UNKNOWN


def test_repr_and_str_show_the_text_of_tensorflow() -> None:
    assert repr(PARTLY) == "TensorShape([2, None])"
    assert repr(UNKNOWN) == "TensorShape(None)"
    assert str(PARTLY) == "(2, None)"
    assert str(tf.TensorShape(2)) == "(2,)"
    assert str(UNKNOWN) == "<unknown>"


@pytest.mark.parametrize("shape", [KNOWN, PARTLY, UNKNOWN, SCALAR], ids=str)
def test_shapes_are_pickled_and_copied(shape: tf.TensorShape) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(shape, protocol)) == shape
    assert copy.deepcopy(shape) == shape


@pytest.mark.parametrize("dims", [[], [2, 3], [0], [None, 7], [300, 2**40], None], ids=str)
def test_a_shape_goes_into_a_message_and_back(dims: Any) -> None:
    proto = tf.TensorShape(dims).as_proto()
    assert isinstance(proto, bytes)
    assert tf.TensorShape(proto) == tf.TensorShape(bytes(proto)) == tf.TensorShape(dims)
    assert tf.TensorShape(bytearray(proto)) == tf.TensorShape(dims)
    assert proto.SerializeToString() == proto
    assert type(proto.SerializeToString()) is bytes
    assert proto.unknown_rank is (dims is None)
    assert [dim.size for dim in proto.dim] == [-1 if d is None else d for d in dims or ()]
    if dims is None:
        with pytest.raises(TypeError, match="unknown rank"):
            iter(proto)
    else:
        assert list(proto) == dims


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([2, 3], "1202080212020803"),
        ([], ""),
        ([0], "1200"),
        ([None], "120b08ffffffffffffffffff01"),
        (None, "1801"),
        ([300], "120308ac02"),
    ],
    ids=str,
)
def test_messages_have_the_bytes_of_tensorflow(dims: Any, message: str) -> None:
    assert tf.TensorShape(dims).as_proto().hex() == message


def test_messages_in_other_forms_are_read() -> None:
    named = bytes_field(2, bytes_field(2, b"rows") + varint(1, 4))
    assert tf.TensorShape(named) == [4]
    assert tf.TensorShapeProto(named).dim[0] == (4, "rows")
    # the last size wins, unknown fields and groups are passed over
    odd = varint(9, 5) + fixed32(8, b"abcd") + group(7, varint(2, 1))
    assert tf.TensorShape(odd + bytes_field(2, varint(1, 4) + odd + varint(1, 5))) == [5]
    # a field of another wire type than its own is an unknown one
    assert tf.TensorShape(varint(2, 5) + bytes_field(3, b"")) == []
    assert tf.TensorShape(varint(3, 1) + varint(3, 0)) == []
    assert tf.TensorShape(bytes_field(2, varint(1, 4)) + varint(3, 1)) == UNKNOWN


def test_a_message_is_equal_to_its_message() -> None:
    class Message:
        def SerializeToString(self) -> bytes:
            return bytes(KNOWN.as_proto())

    assert KNOWN.as_proto() == Message()
    assert PARTLY.as_proto() != Message()
    assert tf.TensorShape(Message()) == KNOWN


@pytest.mark.parametrize("message", ["12", "1203", "120208", "ff", "1b", "1c", "00", "17"])
def test_damaged_messages_are_refused(message: str) -> None:
    with pytest.raises(tf.TensorProtoError, match="damaged"):
        tf.TensorShape(bytes.fromhex(message))


def test_a_size_below_minus_one_is_refused() -> None:
    with pytest.raises(tf.TensorProtoError, match="-2"):
        tf.TensorShape(bytes_field(2, varint(1, -2)))
