# SPDX-License-Identifier: Apache-2.0
"""Operators that are Python functions, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def forward(inputs: Any, outputs: Any) -> None:
    outputs[0].feed(inputs[0].data ** 2)


def backward(inputs: Any, outputs: Any) -> None:
    x, y, dy = (one.data for one in inputs)
    np.testing.assert_array_equal(y, x**2)
    outputs[0].feed(2 * x * dy)


def built(name: str) -> Any:
    return globals()[name]


class Squares:
    """Both functions."""

    def __init__(self, f: Any) -> None:
        self.forward, self.backward = f


@pytest.mark.parametrize("how", ["functions", "class", "builders"])
def test_python_operator(how: str) -> None:
    net = core.Net("python")
    if how == "functions":
        add = net.Python(forward, grad_f=backward)
    elif how == "class":
        add = net.Python((forward, backward), python_func_type=Squares)
    else:
        add = net.Python((built, ("forward",), {}), grad_f=(built, ("backward",), {}))
    add("x", "y")
    gradients = net.AddGradientOperators(["y"])
    workspace.FeedBlob("x", np.array([1.0, 3.0], np.float32))
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob(gradients["x"]), [2, 6])


@pytest.mark.parametrize("f", [forward, (built, ("forward",), {})])
def test_python_operator_without_gradient(f: Any) -> None:
    net = core.Net("no_gradient")
    net.Python(f)("x", "y")
    net.AddGradientOperators(["y"])
    workspace.FeedBlob("x", np.array([1.0], np.float32))
    with pytest.raises(EnforceNotMet, match="PythonGradient"):
        workspace.RunNetOnce(net)


def test_python_operator_with_chosen_gradients() -> None:
    def both(inputs: Any, outputs: Any) -> None:
        outputs[0].feed(inputs[0].data * inputs[1].data)
        outputs[1].feed(inputs[0].data)

    def gradient(inputs: Any, outputs: Any) -> None:
        outputs[0].feed(inputs[0].data * inputs[-1].data)

    net = core.Net("chosen")
    add = net.Python(both, gradient, grad_output_indices=[0], grad_input_indices=[1])
    add(["x", "w"], ["y", "z"])
    gradients = net.AddGradientOperators(["y"])
    assert "x" not in gradients
    workspace.FeedBlob("x", np.array([5.0], np.float32))
    workspace.FeedBlob("w", np.array([3.0], np.float32))
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob(gradients["w"]) == [5]


def test_gradient_function_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="gradient of a Python operator must be a function"):
        core.Net("callable").Python(forward, grad_f=3)
