# SPDX-License-Identifier: Apache-2.0
"""Counters by name, and timers. The values are those that the real Caffe2 gives."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def counters(*registry: str, **args: Any) -> dict[str, int]:
    """The counters that are not 0, by name."""
    run_operator("StatRegistryExport", list(registry), ["k", "v", "t"], **args)
    names, values, times = workspace.FetchBlobs(["k", "v", "t"])
    assert values.dtype == times.dtype == np.int64
    assert names.shape == values.shape == times.shape
    assert all(abs(when - time.time_ns()) < 60e9 for when in times)
    return {n.decode(): int(v) for n, v in zip(names, values, strict=True) if v}


@pytest.fixture(autouse=True)
def counters_at_zero(fresh_workspace: None) -> None:
    counters()


def feed(name: str, value: Any, dtype: Any = np.float32) -> None:
    workspace.FeedBlob(name, np.array(value, dtype))


def test_a_registry_adds_up_what_it_is_given_and_begins_again() -> None:
    run_operator("StatRegistryCreate", [], ["R"])
    feed("K", [b"a", b"b", b"a"], object)
    feed("V", [1, 2, 3], np.int64)
    run_operator("StatRegistryUpdate", ["K", "V", "R"], [])
    assert counters() == {}
    assert counters("R", reset=0) == {"a": 4, "b": 2}
    assert counters("R") == {"a": 4, "b": 2}
    run_operator("StatRegistryExport", ["R"], ["k", "v", "t"])
    assert workspace.FetchBlob("v").tolist() == [0, 0]


def test_a_new_registry_has_no_counters() -> None:
    run_operator("StatRegistryCreate", [], ["R"])
    assert counters("R") == {}


@pytest.mark.parametrize(("values", "dtype"), [([1, 2], np.int64), ([1, 2, 3], np.int32)])
def test_update_refuses_other_numbers_and_types(values: list[int], dtype: type) -> None:
    feed("K", [b"a", b"b", b"a"], object)
    feed("V", values, dtype)
    with pytest.raises(c10.EnforceNotMet):
        run_operator("StatRegistryUpdate", ["K", "V"], [])
    assert counters() == {}


def test_a_timer_counts_when_it_ends() -> None:
    run_operator("TimerBegin", [], ["T"], counter_name="taken")
    run_operator("TimerGet", ["T"], ["first"])
    assert "taken/time_ns/count" not in counters()
    run_operator("TimerGetAndEnd", ["T"], ["last"])
    first, last = workspace.FetchBlobs(["first", "last"])
    assert first.shape == last.shape == ()
    assert first.dtype == np.int64
    assert 0 < first <= last
    assert counters() == {"taken/time_ns/count": 1, "taken/time_ns/sum": int(last)}


@pytest.mark.parametrize("op_type", ["TimerEnd", "TimerGet", "TimerGetAndEnd"])
def test_a_stopped_timer_is_refused(op_type: str) -> None:
    run_operator("TimerBegin", [], ["T"])
    run_operator("TimerEnd", ["T"], [])
    assert counters()["T/time_ns/count"] == 1
    with pytest.raises(c10.EnforceNotMet, match="stopped timer"):
        run_operator(op_type, ["T"], [] if op_type == "TimerEnd" else ["x"])
    assert counters() == {}


def test_wall_clock() -> None:
    run_operator("WallClockTime", [], ["x"])
    now = workspace.FetchBlob("x")
    assert (now.shape, now.dtype) == ((), np.int64)
    assert abs(int(now) - time.time_ns()) < 60e9


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
def test_increment_put(value: Any, dtype: Any, args: Any, counted: int) -> None:
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
def test_what_cannot_be_counted_is_refused(op_type: str, value: Any, dtype: Any, args: Any) -> None:
    feed("X", value, dtype)
    with pytest.raises(c10.EnforceNotMet):
        run_operator(op_type, ["X"], [], **args)
    assert counters() == {}


def test_average_put() -> None:
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
