# SPDX-License-Identifier: Apache-2.0
"""Counters by name, and timers. The values are those that the real Caffe2 gives."""

from __future__ import annotations

import time
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


def test_a_registry_adds_up_its_values_and_begins_again() -> None:
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
    assert (first.shape, last.shape) == ((), (1,))
    assert first.dtype == np.int64
    assert 0 < first <= last
    assert counters() == {"taken/time_ns/count": 1, "taken/time_ns/sum": int(last[0])}


@pytest.mark.parametrize("op_type", ["TimerEnd", "TimerGet", "TimerGetAndEnd"])
def test_a_stopped_timer_is_refused(op_type: str) -> None:
    run_operator("TimerBegin", [], ["T"])
    run_operator("TimerEnd", ["T"], [])
    assert counters()["T/time_ns/count"] == 1
    with pytest.raises(c10.EnforceNotMet, match="stopped timer"):
        run_operator(op_type, ["T"], [] if op_type == "TimerEnd" else ["x"])
    assert counters() == {}


def test_wall_clock_time_gives_nanoseconds_since_1970() -> None:
    run_operator("WallClockTime", [], ["x"])
    now = workspace.FetchBlob("x")
    assert (now.shape, now.dtype) == ((), np.int64)
    assert abs(int(now) - time.time_ns()) < 60e9


def test_the_time_of_a_timer_that_ends_has_one_dimension(fresh_workspace):
    for op_type, inputs, outputs in [
        ("TimerBegin", [], ["timer"]),
        ("TimerGet", ["timer"], ["now"]),
        ("TimerGetAndEnd", ["timer"], ["end"]),
    ]:
        workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, counter_name="t"))
    assert workspace.FetchBlob("now").shape == ()
    assert workspace.FetchBlob("end").shape == (1,)
