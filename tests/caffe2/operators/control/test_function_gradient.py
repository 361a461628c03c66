# SPDX-License-Identifier: Apache-2.0
"""FunctionGradient computes the gradients of a function by torch's autograd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

Tensor = torch.Tensor


@caffe2.operator("FgWave")
def wave(x: Tensor, y: Tensor, *, rate: float = 2.0) -> Tensor:
    """The sine of x * y * rate."""
    return (x * y * rate).sin()


@caffe2.operator("FgPair", types={"x": (c10.float32,), "i": (c10.int64,), "other": None})
def pair(x: Tensor, i: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """The rows at indices, and a square; nothing of the third input."""
    return x[i] + other.numel(), x * x


def net_of(op_type: str, inputs: list[str], outputs: list[str], **args: Any) -> core.Net:
    net = core.Net("own")
    net.Proto().op.append(core.CreateOperator(op_type, inputs, outputs, **args))
    return net


def test_it_is_the_gradient_of_a_function_without_one() -> None:
    x, y = np.float32([0.1, 0.2, 0.3]), np.float32([3, 2, 1])
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("y", y)
    net = net_of("FgWave", ["x", "y"], ["z"], rate=0.5)
    gradients = net.AddGradientOperators(["z"])
    workspace.CreateNet(net, input_blobs=["x", "y"])
    for _ in range(3):
        workspace.RunNet(net.Name())
        slope = np.cos(x * y * 0.5) * 0.5
        np.testing.assert_allclose(workspace.FetchBlob(str(gradients["x"])), slope * y, rtol=1e-5)
        np.testing.assert_allclose(workspace.FetchBlob(str(gradients["y"])), slope * x, rtol=1e-5)


def test_only_inputs_that_have_a_gradient_and_outputs_that_are_given_take_part() -> None:
    x = np.float32([[1, 2], [3, 4]])
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("i", np.int64([1, 1, 0]))
    workspace.FeedBlob("other", np.float32([5]))
    net = net_of("FgPair", ["x", "i", "other"], ["rows", "square"])
    gradients = {str(k): str(v) for k, v in net.AddGradientOperators(["rows", "square"]).items()}
    assert "i" not in gradients
    workspace.RunNetOnce(net)
    wanted = 2 * x + [[1, 1], [2, 2]]
    np.testing.assert_allclose(workspace.FetchBlob(gradients["x"]), wanted)
    assert workspace.FetchBlob(gradients["other"]).tolist() == [0.0]
    only = net_of("FgPair", ["x", "i", "other"], ["rows", "square"])
    gradient = str(only.AddGradientOperators(["square"])["x"])
    workspace.RunNetOnce(only)
    np.testing.assert_allclose(workspace.FetchBlob(gradient), 2 * x)
