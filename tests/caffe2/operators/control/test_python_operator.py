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
def test_python_operator_runs_its_function_and_its_gradient(how: str) -> None:
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
def test_python_operator_without_gradient_is_refused_when_it_is_needed(f: Any) -> None:
    net = core.Net("no_gradient")
    net.Python(f)("x", "y")
    net.AddGradientOperators(["y"])
    workspace.FeedBlob("x", np.array([1.0], np.float32))
    with pytest.raises(EnforceNotMet, match="PythonGradient"):
        workspace.RunNetOnce(net)


def test_python_operator_passes_the_chosen_gradients() -> None:
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


def test_a_python_operator_on_dlpack_tensors_copies_nothing_nor_does_its_gradient():
    torch = pytest.importorskip("torch")

    def double(inputs, outputs):
        x = torch.utils.dlpack.from_dlpack(inputs[0].data)
        assert x.data_ptr() == given.data_ptr()
        outputs[0].feed(torch.utils.dlpack.to_dlpack(made.append(2 * x) or made[-1]))

    def doubled(inputs, outputs):
        outputs[0].feed(2 * torch.from_dlpack(inputs[2]))

    given, made = torch.arange(6.0).view(2, 3), []
    workspace.FeedBlob("x", given)
    net = core.Net("dlpack")
    net.Python(double, doubled)(["x"], ["y"])
    net.Proto().op[0].type = "PythonDLPack"
    gradient = net.AddGradientOperators(["y"])["x"]
    workspace.RunNetOnce(net)
    assert workspace.FetchTorch("y").data_ptr() == made[0].data_ptr()
    assert workspace.FetchBlob("y").tolist() == [[0, 2, 4], [6, 8, 10]]
    assert workspace.FetchBlob(str(gradient)).tolist() == [[2, 2, 2], [2, 2, 2]]


def test_an_output_of_a_dlpack_operator_is_written_in_place_after_its_sizes_are_set():
    torch = pytest.importorskip("torch")

    def fill(inputs, outputs):
        assert inputs[0]._shape == [2]
        outputs[0]._reshape([3])
        torch.from_dlpack(outputs[0]).fill_(7)

    workspace.FeedBlob("x", torch.ones(2))
    net = core.Net("dlpack")
    net.Python(fill)(["x"], ["y"])
    net.Proto().op[0].type = "PythonDLPack"
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("y").tolist() == [7, 7, 7]
