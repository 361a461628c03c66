# SPDX-License-Identifier: Apache-2.0
"""Operators that count what tensors hold. The values are those that Caffe2 counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace
from tests.helpers.counters import counters
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.fixture(autouse=True)
def counters_at_zero(fresh_workspace: None) -> None:
    counters()


def feed(name: str, value: Any, dtype: Any = np.float32) -> None:
    workspace.FeedBlob(name, np.array(value, dtype))


@pytest.mark.parametrize(
    ("value", "dtype", "args", "counted"),
    [
        ([2, 5], np.int32, {}, 2),
        ([2, 5], np.uint8, {"magnitude_expand": 10}, 20),
        ([1.5], np.float16, {"magnitude_expand": 1000}, 1500),
        ([1.7], np.float32, {}, 1),
        ([-1.7], np.float64, {}, -1),
        ([-1.5], np.float32, {"magnitude_expand": 1000}, -1500),
        ([np.nan, 7], np.float32, {"bound": 1}, 0),
        ([1e19], np.float32, {"bound": 1}, 2**63 - 1),
        ([-1e18], np.float32, {"bound": 1, "magnitude_expand": 1000}, -(2**63)),
        ([], np.float32, {"default_value": 3.5}, 3),
        ([], np.float32, {"default_value": 3.5, "magnitude_expand": 2}, 7),
        ([], np.int64, {"default_value": 3.5, "magnitude_expand": 2}, 6),
    ],
)
def test_increment_put_adds_the_value(value: Any, dtype: Any, args: Any, counted: int) -> None:
    feed("X", value, dtype)
    run_operator("IncrementPut", ["X"], [], **args)
    assert counters() == ({"X/stat_value": counted} if counted else {})


@pytest.mark.parametrize(
    ("value", "dtype", "args"),
    [
        ([np.nan], np.float32, {}),
        ([1e18], np.float32, {"magnitude_expand": 1000}),
        ([], np.float32, {}),
        ([True], np.bool_, {}),
        ([b"a"], object, {}),
        ([1], np.int32, {"magnitude_expand": 0}),
    ],
)
@pytest.mark.parametrize("op_type", ["IncrementPut", "AveragePut", "StdDevPut"])
def test_values_that_cannot_be_counted_are_refused(
    op_type: str, value: Any, dtype: Any, args: Any
) -> None:
    feed("X", value, dtype)
    with pytest.raises(c10.EnforceNotMet):
        run_operator(op_type, ["X"], [], **args)
    assert counters() == {}


def test_average_put_adds_to_sum_and_count() -> None:
    for value in (2, 5):
        feed("X", [value])
        run_operator("AveragePut", ["X"], [], stat_name="s", magnitude_expand=10)
    assert counters() == {"s/stat_value/sum": 70, "s/stat_value/count": 2}


def test_std_dev_put_is_the_operator_s_own_from_run_to_run() -> None:
    feed("X", [2], np.int64)
    net = core.Net("net")
    net.StdDevPut(["X"], [], stat_name="d")
    workspace.CreateNet(net)
    for value in (2, 5, 9):
        feed("X", [value], np.int64)
        workspace.RunNet(net)
    assert counters() == {
        "d/stat_value/sum": 16,
        "d/stat_value/count": 3,
        "d/stat_value/sumoffset": 10,
        "d/stat_value/sumsqoffset": 58,
    }
