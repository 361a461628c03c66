# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow wrote is read, and written the same, in every element type; without it."""

import pytest

from bridge import at, caffe2, tf
from bridge.c10.raw_parts import from_buffer
from bridge.c10.type_meta import TypeMeta
from bridge.tf.element_types import BY_NAME
from tests.tf.golden import GOLDEN, NUMERIC, STRINGS, Recorded, bytes_of


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("row", NUMERIC, ids=str)
def test_numbers_are_read(row: Recorded, copy: bool) -> None:
    x = tf.from_tensor_proto(row.message, copy=copy)
    assert x.dtype().name == row.dtype
    assert tuple(x.sizes()) == row.sizes
    assert bytes_of(x) == row.data
    assert x.is_contiguous()


@pytest.mark.parametrize("row", STRINGS, ids=str)
def test_strings_are_read(row: Recorded) -> None:
    x = tf.from_tensor_proto(row.message)
    assert x.dtype().name == "string"
    assert tuple(x.sizes()) == row.sizes
    assert list(caffe2.Tensor(x).data()) == row.data


@pytest.mark.parametrize("row", [r for r in NUMERIC if r.by == "python"], ids=str)
def test_numbers_are_written_the_same(row: Recorded) -> None:
    x = at.Tensor._wrap(from_buffer(row.data, row.sizes, TypeMeta.Make(row.dtype)))
    assert tf.make_tensor_proto(x) == row.message


@pytest.mark.parametrize("row", [r for r in STRINGS if r.by == "python"], ids=str)
def test_strings_are_written_the_same(row: Recorded) -> None:
    x = caffe2.Tensor(list(row.sizes), list(row.data), "string")
    assert tf.make_tensor_proto(x) == row.message


def test_every_type_is_there() -> None:
    assert {row.dtype for row in GOLDEN} == set(BY_NAME)
    assert {row.by for row in GOLDEN} == {"python", "c++", "content", "repeated"}
