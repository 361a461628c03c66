# SPDX-License-Identifier: Apache-2.0
"""Which recordings become programs; small constants are made once for all runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
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


@pytest.mark.parametrize(
    ("function", "is_accepted"), [(kept, True), (written, True), (reads, False)]
)
def test_what_reads_values_is_refused(function: Any, is_accepted: bool) -> None:
    x, out = torch.ones(2, 3), torch.empty(2, 3)
    result, calls = record(function, [x], {"out": out})
    assert (compile_calls(calls, [x], [out], [result], {}) is not None) == is_accepted
