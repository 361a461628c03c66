# SPDX-License-Identifier: Apache-2.0
"""Fills from random numbers: their distributions, and their seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def filled(op_type: str, inputs: tuple[Any, ...] = (), seed: int | None = 1, **args: Any) -> Any:
    """What a fill gives out, its generator seeded."""
    option = None
    if seed is not None:
        option = core.DeviceOption(0, random_seed=seed)
    names = [f"X{i}" for i in range(len(inputs))]
    for name, value in zip(names, inputs, strict=True):
        workspace.FeedBlob(name, value)
    workspace.RunOperatorOnce(
        core.CreateOperator(op_type, names, ["Y"], device_option=option, **args)
    )
    return workspace.FetchBlob("Y")


def test_uniform_fill_is_uniform_between_its_limits() -> None:
    y = filled("UniformFill", shape=[100, 100], min=2.0, max=5.0)
    assert y.dtype == np.float32
    assert y.shape == (100, 100)
    assert y.min() >= 2 and y.max() < 5
    assert abs(y.mean() - 3.5) < 0.05
    assert abs(y.std() - 3 / 12**0.5) < 0.05


def test_uniform_fill_takes_its_limits_from_inputs() -> None:
    like = np.zeros((50, 2), np.float32)
    limits = np.array([2.0], np.float32), np.array([3.0], np.float32)
    y = filled("UniformFill", (like, *limits))
    assert y.shape == (50, 2)
    assert y.min() >= 2 and y.max() < 3


def test_uniform_integers_reach_both_ends() -> None:
    y = filled("UniformIntFill", shape=[1000], min=-2, max=3)
    assert y.dtype == np.int32
    assert sorted(set(y.tolist())) == [-2, -1, 0, 1, 2, 3]


def test_gaussian_fill_has_its_mean_and_deviation() -> None:
    y = filled("GaussianFill", shape=[100, 100], mean=-1.0, std=2.0)
    assert y.dtype == np.float32
    assert abs(y.mean() + 1) < 0.1
    assert abs(y.std() - 2) < 0.1


def test_xavier_is_uniform_by_fan_in() -> None:
    y = filled("XavierFill", shape=[100, 50, 2])
    scale = (3 / 100) ** 0.5
    assert abs(np.abs(y).max() - scale) < 0.01
    assert abs(y.std() - scale / 3**0.5) < 0.01


def test_msra_is_normal_by_fan_out() -> None:
    y = filled("MSRAFill", shape=[100, 50, 2])
    assert abs(y.std() - (2 / 200) ** 0.5) < 0.01
    assert abs(y.mean()) < 0.01


def test_float16_uniform_fill_gives_float16_between_its_limits() -> None:
    y = filled("Float16UniformFill", shape=[1000], min=1.0, max=2.0)
    assert y.dtype == np.float16
    assert y.min() >= 1 and y.max() <= 2


@pytest.mark.parametrize("dtype", [core.DataType.INT32, core.DataType.INT64])
def test_unique_values_avoid_those_given(dtype: int) -> None:
    numpy_type = np.int32 if dtype == core.DataType.INT32 else np.int64
    avoid = np.array([3, 5], numpy_type)
    y = filled("UniqueUniformFill", (np.zeros(8, np.float32), avoid), min=1, max=10, dtype=dtype)
    assert y.dtype == numpy_type
    assert sorted(y.tolist()) == [1, 2, 4, 6, 7, 8, 9, 10]


@pytest.mark.parametrize("op_type", ["UniformFill", "GaussianFill", "XavierFill", "MSRAFill"])
def test_a_seed_repeats_its_numbers(op_type: str) -> None:
    first = filled(op_type, seed=3, shape=[4, 5])
    np.testing.assert_array_equal(filled(op_type, seed=3, shape=[4, 5]), first)
    assert not np.array_equal(filled(op_type, seed=4, shape=[4, 5]), first)


def test_an_operator_goes_on_from_its_seed() -> None:
    option = core.DeviceOption(0, random_seed=3)
    operator = core.CreateOperator("GaussianFill", [], ["Y"], shape=[5], device_option=option)
    workspace.RunOperatorOnce(operator)
    once = workspace.FetchBlob("Y")
    workspace.RunOperatorMultiple(operator, 2)
    assert not np.array_equal(workspace.FetchBlob("Y"), once)


def test_without_a_seed_numbers_are_torchs() -> None:
    import torch

    torch.manual_seed(7)
    first = filled("GaussianFill", seed=None, shape=[5])
    torch.manual_seed(7)
    np.testing.assert_array_equal(filled("GaussianFill", seed=None, shape=[5]), first)


@pytest.mark.parametrize(
    ("op_type", "args"),
    [
        ("XavierFill", {"shape": []}),
        ("XavierFill", {"shape": [0, 3]}),
        ("MSRAFill", {"shape": [3]}),
        ("MSRAFill", {"shape": [3, 0]}),
        ("GaussianFill", {"shape": [3], "std": -1.0}),
        ("Float16UniformFill", {"shape": [3], "min": 2.0, "max": 1.0}),
        ("UniformIntFill", {"shape": [3], "min": 0.5, "max": 2.0}),
    ],
)
def test_wrong_arguments_are_refused_and_leave_the_output(
    op_type: str, args: dict[str, Any]
) -> None:
    workspace.FeedBlob("Y", np.array([1, 2]))
    with pytest.raises(c10.EnforceNotMet):
        filled(op_type, **args)
    assert workspace.FetchBlob("Y").tolist() == [1, 2]
