# SPDX-License-Identifier: Apache-2.0
"""Which recordings become programs; small constants are made once for all runs."""

from __future__ import annotations

import gc
import re
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.execution.recorder import compile_calls, record

pytestmark = pytest.mark.usefixtures("fresh_workspace")

Tensor = torch.Tensor
Out = Any


def kept(x: Tensor, *, out: Out = None) -> Tensor:
    return torch.add(x, torch.tensor([1.0, 2.0, 3.0]).view(1, 3), out=out)


def written(x: Tensor, *, out: Out = None) -> Tensor:
    count = x.new_zeros((3,))
    count.add_(1.0)
    return torch.add(x, count, out=out)


def written_by_a_view(x: Tensor, *, out: Out = None) -> Tensor:
    count = x.new_zeros((1, 3))
    count.view(3).add_(1.0)
    return torch.add(x, count, out=out)


def written_as_out(x: Tensor, *, out: Out = None) -> Tensor:
    count = x.new_zeros((2, 3))
    torch.add(x, count, out=count)
    return torch.add(x, count, out=out)


def returned(x: Tensor) -> Tensor:
    return x.new_full((2, 3), 4.0)


def reads(x: Tensor, *, out: Out = None) -> Tensor:
    return torch.mul(x, float(x.sum()), out=out)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (kept, [[2.0, 3.0, 4.0]] * 2),
        (written, [[2.0] * 3] * 2),
        (written_by_a_view, [[2.0] * 3] * 2),
        (written_as_out, [[2.0] * 3] * 2),
        (returned, [[4.0] * 3] * 2),
        (reads, [[6.0] * 3] * 2),
    ],
)
def test_each_run_computes_the_same(
    function: Any, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"Recorded_{function.__name__}"
    caffe2.operator(name)(function)
    monkeypatch.setattr(function, "__module__", "bridge.caffe2.operators.")  # or it is not recorded
    workspace.FeedBlob("x", np.ones((2, 3), np.float32))
    net = core.Net("recorded")
    net.Proto().op.extend([core.CreateOperator(name, ["x"], ["y"])])
    workspace.CreateNet(net)
    for _ in range(5):
        workspace.RunNet(net)
        np.testing.assert_array_equal(workspace.FetchBlob("y"), expected)
        workspace.FetchTorch("y").fill_(9.0)


@pytest.mark.parametrize("way", ["net", "operator", "module"])
def test_the_function_runs_twice_and_then_its_calls_are_played(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def counted(x: Tensor, *, out: Out = None) -> Tensor:
        calls.append(out is not None)
        return torch.add(x, 1, out=out)

    name = f"Counted_{way}"
    monkeypatch.setattr(counted, "__module__", "bridge.caffe2.operators.")  # or it is not recorded
    caffe2.operator(name)(counted)
    operator = core.CreateOperator(name, ["x"], ["y"])
    net = core.Net("counted")
    net.Proto().op.extend([operator])
    workspace.FeedBlob("x", np.zeros(3, np.float32))
    workspace.CreateNet(net)
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    for turn in range(5):
        x = np.full(3, turn, np.float32)
        workspace.FeedBlob("x", x)
        if way == "module":
            found = module(x).tolist()
        else:
            if way == "net":
                workspace.RunNet(net)
            else:
                workspace.RunOperatorOnce(operator)
            found = workspace.FetchBlob("y").tolist()
        assert found == [turn + 1] * 3
        if way != "module" or hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):  # torch 2.10
            assert calls == [False, True][: turn + 1]


def picks(x: Tensor, *, out: Out = None) -> Tensor:
    return torch.mul(x[x.long().view(-1)[:2] * 0], 2, out=out)


def picks_by_a_number(x: Tensor, *, out: Out = None) -> Tensor:
    return torch.mul(x[x.long().view(-1)[0] * 0].expand(2, 3), 2, out=out)


def picks_by_a_mask(x: Tensor, *, out: Out = None) -> Tensor:
    return torch.mul(x[x > 0].view(2, 3), 2, out=out)


class _Garbage:
    """Is freed by the garbage collector, with a call of torch."""

    def __init__(self) -> None:
        self.own, self.tensor = self, torch.ones(2)

    def __del__(self) -> None:
        self.tensor.sum()


def test_finalizers_that_run_meanwhile_are_not_recorded() -> None:
    def collected(x: Tensor, *, out: Out = None) -> Tensor:
        _lists: list[Any] = [[] for _ in range(2000)]  # enough for a collection
        return torch.add(x, 1, out=out)

    x, out = torch.ones(2, 3), torch.empty(2, 3)
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(5):
            _Garbage()
            result, calls = record(collected, [x], {"out": out})
            assert [call[0] for call in calls] == [torch.add]
    finally:
        gc.set_threshold(*before)
    assert gc.isenabled()
    assert result is out


@pytest.mark.parametrize(
    ("function", "is_accepted"),
    [
        (kept, True),
        (written, True),
        (reads, False),
        (picks, True),
        (picks_by_a_number, False),
        (picks_by_a_mask, False),
    ],
)
def test_a_function_that_reads_values_is_not_recorded(function: Any, is_accepted: bool) -> None:
    x, out = torch.ones(2, 3), torch.empty(2, 3)
    result, calls = record(function, [x], {"out": out})
    assert (compile_calls(calls, [x], [out], [result], {}) is not None) == is_accepted


def test_sizes_that_alternate_are_recorded_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    net = core.Net("alternating")
    net.ReduceFrontSum(net.Gather(["x", "rows"], "picked"), "total")
    net.TopK("picked", ["largest", "places"], k=1)
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("rows", np.array([0]))
    workspace.CreateNet(net)
    calls = []
    real = record

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return real(*arguments)

    monkeypatch.setattr("bridge.caffe2.execution.recorder.record", counted)
    counts = []
    for _ in range(4):
        for rows in ([0], [1, 3], [2, 0, 1]):
            workspace.FeedBlob("rows", np.array(rows))
            workspace.RunNet(net.Proto().name)
            assert workspace.FetchBlob("total").tolist() == x[rows].sum(0).tolist()
            assert workspace.FetchBlob("largest").tolist() == x[rows].max(1, keepdims=True).tolist()
        counts.append(len(calls))
    # each operator has been recorded for each of the sizes by the second round
    assert counts[-1] == counts[1] > 0


@pytest.mark.parametrize("rewritten", [False, True])
def test_sizes_in_an_input_are_those_of_each_run(rewritten: bool) -> None:
    net = core.Net("sized")
    net.Reshape(["x", "shape"], ["y", "old"])
    net.Slice(["y", "starts", "ends"], "part")
    x = np.arange(12, dtype=np.float32)
    workspace.FeedBlob("x", x.reshape(1, 12))
    shapes = [[3, 4], [4, 3], [-1, 2], [12, 1]]
    workspace.FeedBlob("starts", np.array([0, 0], np.int64))
    workspace.FeedBlob("shape", np.array(shapes[0], np.int64))
    workspace.FeedBlob("ends", np.array([2, -1], np.int64))
    workspace.CreateNet(net)
    for turn in range(12):
        shape = shapes[turn % 4] if turn < 8 else [6, 2]
        if rewritten:
            workspace.FetchTorch("shape").copy_(torch.tensor(shape))
        else:
            workspace.FeedBlob("shape", np.array(shape, np.int64))
        y = x.reshape(shape)
        workspace.RunNet(net)
        assert np.array_equal(workspace.FetchBlob("y"), y)
        assert np.array_equal(workspace.FetchBlob("part"), y[:2])
        assert workspace.FetchBlob("old").tolist() == [1, 12]


def test_rows_out_of_range_change_nothing_in_a_recorded_run() -> None:
    net = core.Net("step on rows")
    net.SparseAdagrad(["w", "h", "rows", "g", "lr"], ["w", "h"])
    for name in ("w", "h"):
        workspace.FeedBlob(name, np.ones((4, 3), np.float32))
    workspace.FeedBlob("g", np.ones((2, 3), np.float32))
    workspace.FeedBlob("lr", np.ones(1, np.float32))
    workspace.FeedBlob("rows", np.array([0, 1]))
    workspace.CreateNet(net)
    for _ in range(4):
        workspace.RunNet(net.Proto().name)
    before = workspace.FetchBlob("w"), workspace.FetchBlob("h")
    workspace.FeedBlob("rows", np.array([0, 4]))
    with pytest.raises(EnforceNotMet, match="rows are from 0 to below 4"):
        workspace.RunNet(net.Proto().name)
    assert np.array_equal(before[0], workspace.FetchBlob("w"))
    assert np.array_equal(before[1], workspace.FetchBlob("h"))


def test_an_output_that_is_not_computed_keeps_no_operator_from_its_tape() -> None:
    workspace.FeedBlob("x", np.arange(3, dtype=np.float32))
    net = core.Net("n")
    net.Dropout("x", ["y", "mask"], is_test=1)
    workspace.CreateNet(net)
    for run in range(4):
        workspace.FeedBlob("x", np.full(3, run, np.float32))
        workspace.RunNet(net)
        assert workspace.FetchBlob("y").tolist() == [run] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize("number", [3, 0.1, -0.0, float("inf"), 2**30 + 1])
def test_numbers_on_a_tape_have_the_value_that_they_have_beside_a_tensor(
    dtype: Any, number: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computed(x: Tensor) -> tuple[Tensor, ...]:
        scaled = x * number
        return 1 - x, scaled, number / x, torch.where(x > 0.1, scaled, number), x.clone().add_(2)

    computed.__annotations__["return"] = "tuple[Tensor, Tensor, Tensor, Tensor, Tensor]"
    name = re.sub(r"\W", "_", f"Numbers_{dtype.__name__}_{number}")  # as torch.ops has names
    monkeypatch.setattr(computed, "__module__", "bridge.caffe2.operators.")  # or it is not recorded
    caffe2.operator(name, types=None)(computed)
    workspace.FeedBlob("x", np.array([-1.5, 0.1, 2.0, 3.0]).astype(dtype))
    outputs = ["a", "b", "c", "d", "e"]
    net = core.Net("numbers")
    net.Proto().op.extend([core.CreateOperator(name, ["x"], outputs)])
    workspace.CreateNet(net)
    found = []
    for _ in range(4):
        workspace.RunNet(net)
        blobs = [workspace.FetchBlob(one) for one in outputs]
        found.append([(blob.dtype, blob.tobytes()) for blob in blobs])
    assert found[0] == found[1] == found[2] == found[3]
