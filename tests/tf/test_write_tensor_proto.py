# SPDX-License-Identifier: Apache-2.0
"""`tf.make_tensor_proto`: what is inferred, from what, and what is refused."""

from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2, tf
from tests.helpers.ids import shown
from tests.tf.golden import bytes_of

# As TensorFlow 2.21 writes them.
PYTHON_VALUES = [
    (1, "080312003a0101"),
    (1.5, "080112002a040000c03f"),
    (-0.0, "080112002a0400000080"),
    (float("inf"), "080112002a040000807f"),
    (True, "080a12005a0101"),
    (1j, "0812120062100000000000000000000000000000f03f"),
    (-1, "080312003a0affffffffffffffffff01"),
    (2**31, "0809120052058080808008"),
    (2**63, "081712008a010a80808080808080808001"),
    ([1, 2], "080312041202080222080100000002000000"),
    ((1, 2.5), "080112041202080222080000803f00002040"),
    ([True, 1], "080312041202080222080100000001000000"),
    ([], "080112021200"),
    ([[], []], "08011206120208021200"),
    ([2**40, 1], "0809120412020802221000000000000100000100000000000000"),
    ([[1, 2], [3, 4.5]], "08011208120208021202080222100000803f000000400000404000009040"),
    ("a", "08071200420161"),
    ("é", "080712004202c3a9"),
    (b"ab\0", "080712004203616200"),
    ("", "080712004200"),
    (["a", b"b"], "0807120412020802420161420162"),
    ([["a"], ["bc"]], "08071208120208021202080142016142026263"),
    (bytearray(b"abc"), "08041204120208032203616263"),
    (memoryview(b"abc"), "08041204120208032203616263"),
]
ARRAYS = [
    (np.float64(1.5), "080212003208000000000000f83f"),
    (np.int64(3), "08091200520103"),
    (np.array([1.5]), "08021204120208013208000000000000f83f"),
    (np.array([b"a", b"b\0"]), "0807120412020802420161420162"),
    (np.array([b"a", "b", b"c\0"], object), "080712041202080342016142016242026300"),
    (np.array(["x", "yé"]), "0807120412020802420178420379c3a9"),
    (np.zeros((2, 0), "S1"), "08071206120208021200"),
    (np.zeros((0, 2), np.int8), "08061206120012020802"),
    (np.array([1.5, 2], ">f4"), "080112041202080222080000c03f00000040"),
    (np.array([1], ">i8"), "0809120412020801520101"),
    (
        np.arange(6, dtype="i1").reshape(2, 3).T,
        "08061208120208031202080222060003010402 05".replace(" ", ""),
    ),
    (np.arange(3, dtype="i1")[::-1], "08061204120208032203020100"),
]


@pytest.mark.parametrize(("value", "message"), PYTHON_VALUES, ids=shown)
def test_python_values_give_the_bytes_of_tensorflow(value: Any, message: str) -> None:
    assert tf.make_tensor_proto(value).hex() == message


@pytest.mark.parametrize(("array", "message"), ARRAYS, ids=repr)
def test_arrays_give_the_bytes_of_tensorflow(array: Any, message: str) -> None:
    made = tf.make_tensor_proto(array)
    assert type(made) is bytes
    assert made.hex() == message


TENSORS = {
    "torch": lambda a: torch.from_numpy(a.copy()),
    "at": lambda a: bridge.from_dlpack(a.copy()),
    "caffe2": lambda a: caffe2.Tensor(bridge.from_dlpack(a.copy())),
    "transposed": lambda a: bridge.from_dlpack(a.T.copy()).t(),
    "read-only": lambda a: tf.from_tensor_proto(tf.make_tensor_proto(a)),
    "capsule": lambda a: bridge.from_dlpack(a.copy()).__dlpack__(),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_are_as_their_arrays(kind: str) -> None:
    array = np.arange(6, dtype=np.int64).reshape(2, 3)
    made = tf.make_tensor_proto(TENSORS[kind](array))
    assert made == tf.make_tensor_proto(array)
    assert bytes_of(tf.from_tensor_proto(made)) == array.tobytes()


def test_it_is_a_copy() -> None:
    array = np.arange(6.0)
    made = tf.make_tensor_proto(array)
    array[:] = 0
    assert tf.from_tensor_proto(made).tolist() == [0, 1, 2, 3, 4, 5]


def test_string_tensors_are_written_as_strings() -> None:
    wanted = tf.make_tensor_proto([["a"], ["b\0"]])
    x = bridge.asarray([["a"], ["b\0"]])
    assert tf.make_tensor_proto(x) == tf.make_tensor_proto(caffe2.Tensor(x)) == wanted
    assert tf.from_tensor_proto(wanted).tolist() == [[b"a"], [b"b\0"]]


def test_long_sizes_and_much_content_are_written() -> None:
    made = tf.make_tensor_proto(np.zeros((200, 300), np.float32))
    assert made[:21].hex() == "0801120a120308c801120308ac022280d30e000000"[:42]
    assert len(made) == 18 + 240000


@pytest.mark.parametrize(
    "dtype",
    [one.name for one in map(c10.TypeMeta.Make, ("complex32", "float8_e3m4", "float8_e8m0fnu"))],
)
def test_types_that_tensorflow_lacks_are_refused(dtype: str) -> None:
    with pytest.raises(tf.TensorProtoError, match=dtype):
        tf.make_tensor_proto(at.zeros(2, dtype=dtype))


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (2**64, TypeError),
        (None, TypeError),
        ([None], TypeError),
        ({1: 2}, TypeError),
        ([1, "a"], TypeError),
        (["a", 1], TypeError),
        (np.array([1, None], object), TypeError),
        (["\udcff"], ValueError),
        ([[1], [2, 3]], ValueError),
        ([["a"], ["b", "c"]], ValueError),
        (1e300, ValueError),
        ([0.1, -1e39], ValueError),
        (np.array(["2020"], "M8[s]"), BufferError),
        (np.longdouble(1), BufferError),
        (np.ma.array([1, 2], mask=[0, 1]), BufferError),
        (torch.ones(2, requires_grad=True), BufferError),
        (torch.ones(2).to_sparse(), BufferError),
    ],
    ids=lambda v: v.__name__ if isinstance(v, type) else repr(v)[:30],
)
def test_values_that_make_no_tensor_are_refused(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        tf.make_tensor_proto(value)


def test_two_gib_are_too_much() -> None:
    x = at.zeros(1).expand(1 << 29)
    with pytest.raises(tf.TensorProtoError, match="2147483648 bytes"):
        tf.make_tensor_proto(x)
