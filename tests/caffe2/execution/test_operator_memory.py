# SPDX-License-Identifier: Apache-2.0
"""Built-in operators work on the memory of the blobs: nothing is copied in or out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import c10
from bridge.caffe2 import workspace
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize(
    ("op_type", "args"),
    [
        ("Negative", {}),
        ("Scale", {"scale": 2.0}),
        ("Clip", {"min": 0.0}),
        ("Pow", {"exponent": 2.0}),
    ],
)
def test_in_place_writes_the_tensor_that_was_fed(op_type: str, args: dict[str, Any]) -> None:
    x = torch.tensor([-1.0, 2.0, 3.0])
    workspace.FeedBlob("x", x)
    run_operator(op_type, ["x"], ["x"], **args)
    assert x.tolist() == workspace.FetchBlob("x").tolist() != [-1, 2, 3]
    assert workspace.FetchTorch("x").data_ptr() == x.data_ptr()


def test_a_new_tensor_in_place_of_an_input_is_written_to_its_memory() -> None:
    x = torch.ones(2, 2)
    workspace.FeedBlob("x", x)
    run_operator("GivenTensorFill", ["x"], ["x"], values=[1.0, 2.0, 3.0, 4.0])
    assert x.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("op_type", ["Add", "Mul", "EQ"])
def test_an_output_keeps_its_buffer_from_run_to_run(op_type: str) -> None:
    workspace.FeedBlob("a", np.ones((3, 4), np.float32))
    workspace.FeedBlob("b", np.ones((3, 4), np.float32))
    run_operator(op_type, ["a", "b"], ["y"])
    seen = workspace.FetchTorch("y")
    workspace.FeedBlob("b", np.full((3, 4), 5, np.float32))
    run_operator(op_type, ["a", "b"], ["y"])
    assert workspace.FetchTorch("y").data_ptr() == seen.data_ptr()
    assert seen.tolist() == workspace.FetchBlob("y").tolist()


def test_an_adopted_result_is_shared_with_torch() -> None:
    workspace.FeedBlob("x", np.arange(6, dtype=np.float32).reshape(2, 3))
    run_operator("Transpose", ["x"], ["y"])
    y = workspace.FetchTorch("y")
    y.zero_()
    assert workspace.FetchBlob("y").tolist() == [[0, 0], [0, 0], [0, 0]]
    assert workspace.FetchBlob("x").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_alias_shares_and_copy_does_not() -> None:
    workspace.FeedBlob("x", np.zeros(3, np.float32))
    run_operator("Alias", ["x"], ["alias"])
    run_operator("Copy", ["x"], ["copy"])
    workspace.FetchTorch("x")[0] = 7
    assert workspace.FetchBlob("alias").tolist() == [7, 0, 0]
    assert workspace.FetchBlob("copy").tolist() == [0, 0, 0]


def test_an_output_of_another_type_and_size_is_replaced() -> None:
    workspace.FeedBlob("y", np.arange(100))
    workspace.FeedBlob("x", np.ones((2, 3), np.float32))
    for op_type in ("Transpose", "Negative"):
        run_operator(op_type, ["x"], ["y"])
        assert workspace.FetchBlob("y").dtype == np.float32


def test_read_only_memory_is_read_and_never_written() -> None:
    array = np.arange(3, dtype=np.float32)
    array.flags.writeable = False
    workspace.FeedBlob("x", bridge.from_dlpack(array))
    run_operator("Negative", ["x"], ["y"])
    assert workspace.FetchBlob("y").tolist() == [0, -1, -2]
    run_operator("Negative", ["x"], ["x"])
    assert array.tolist() == [0, 1, 2]
    assert workspace.FetchBlob("x").tolist() == [0, -1, -2]


def test_grad_mode_makes_no_difference() -> None:
    weight = torch.nn.Parameter(torch.ones(3))
    with pytest.raises(c10.EnforceNotMet):
        workspace.FeedBlob("w", weight)
    workspace.FeedBlob("w", weight.detach())
    run_operator("Scale", ["w"], ["y"], scale=3.0)
    assert not workspace.FetchTorch("y").requires_grad


def test_blobs_that_are_no_tensors_are_refused_by_name() -> None:
    workspace.FeedBlob("x", "text")
    with pytest.raises(c10.EnforceNotMet, match="'x'"):
        run_operator("Negative", ["x"], ["y"])
    assert not workspace.HasBlob("y")


@pytest.mark.parametrize(
    ("op_type", "dtype"),
    [
        ("GivenTensorFill", np.float32),
        ("GivenTensorDoubleFill", np.float64),
        ("GivenTensorIntFill", np.int32),
        ("GivenTensorInt64Fill", np.int64),
    ],
)
def test_a_fill_gives_the_many_values_that_it_is_given(op_type: str, dtype: Any) -> None:
    values = np.arange(10_000).reshape(100, 100).astype(dtype)
    run_operator(op_type, [], ["y"], shape=[100, 100], values=values)
    y = workspace.FetchBlob("y")
    assert y.dtype == dtype
    np.testing.assert_array_equal(y, values)
    with pytest.raises(c10.EnforceNotMet, match="10000 values"):
        run_operator(op_type, [], ["y"], shape=[100, 99], values=values)


def test_many_given_floats_are_no_integers() -> None:
    with pytest.raises(c10.EnforceNotMet):
        run_operator("GivenTensorIntFill", [], ["y"], shape=[5000], values=np.zeros(5000))
