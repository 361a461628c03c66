# SPDX-License-Identifier: Apache-2.0
"""Operators whose functions declare no gradient get autograd's; their results are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

Tensor = torch.Tensor


@caffe2.operator("AgWave")
def wave(x: Tensor, y: Tensor, *, rate: float = 2.0) -> Tensor:
    """The sine of x * y * rate."""
    return (x * y * rate).sin()


@caffe2.operator("AgNoise", effects=("random",))
def noise(x: Tensor) -> Tensor:
    """x with noise."""
    return x + torch.rand(())


@caffe2.operator("AgRegistered")
def registered(x: Tensor) -> Tensor:
    """x."""
    return x + 0


@core.GradientRegistry.RegisterGradient("AgRegistered")
def registered_gradient(op: Any, given: Any) -> Any:
    """The gradient, whatever the function is."""
    return core.CreateOperator("Scale", [given[0]], ["gx"], scale=7.0), ["gx"]


def net_of(op_type: str, inputs: list[str], outputs: list[str], **args: Any) -> core.Net:
    net = core.Net("own")
    net.Proto().op.append(core.CreateOperator(op_type, inputs, outputs, **args))
    return net


def test_a_model_trains_through_a_function() -> None:
    workspace.FeedBlob("x", np.float32([0.5]))
    workspace.FeedBlob("y", np.float32([0.1]))
    net = core.Net("trained")
    net.Proto().op.append(core.CreateOperator("AgWave", ["x", "y"], ["z"]))
    net.AveragedLoss("z", "loss")
    gradient = net.AddGradientOperators(["loss"])["y"]
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob(str(gradient)), [np.cos(0.1)], rtol=1e-5)


def test_a_registered_gradient_comes_first() -> None:
    workspace.FeedBlob("x", np.float32([1]))
    net = net_of("AgRegistered", ["x"], ["y"])
    gradient = str(net.AddGradientOperators(["y"])["x"])
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob(gradient).tolist() == [7.0]


def test_a_function_that_draws_has_no_such_gradient() -> None:
    with pytest.raises(c10.EnforceNotMet, match="does not compute the same twice"):
        net_of("AgNoise", ["x"], ["y"]).AddGradientOperators(["y"])


@pytest.mark.parametrize(
    ("name", "returned", "outputs"),
    [
        ("AgFewer", lambda x: x, 2),
        ("AgMore", lambda x: (x, x, x), 2),
        ("AgNone", lambda x: (x, None), 2),
        ("AgNothing", lambda x: None, 1),
        ("AgTuple", lambda x: (x, x), 1),
        ("AgMany", lambda x: [x, x, x], 2),
    ],
)
def test_wrong_results_are_refused(name: str, returned: Any, outputs: int) -> None:
    counts = "1-*" if name == "AgMany" else outputs

    @caffe2.operator(name, outputs=counts)
    def function(x: Tensor) -> Any:
        return returned(x)

    workspace.FeedBlob("x", np.float32([1]))
    names = [f"y{o}" for o in range(outputs)]
    net = net_of(name, ["x"], names)
    for _ in range(3):
        with pytest.raises(c10.EnforceNotMet, match=f"the operator has {outputs} outputs"):
            workspace.RunNetOnce(net)
    module = caffe2.to_module(net, inputs=["x"], outputs=["y0"])
    with pytest.raises(c10.EnforceNotMet, match=f"the operator has {outputs} outputs"):
        module(torch.ones(1))
