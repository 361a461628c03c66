# SPDX-License-Identifier: Apache-2.0
"""Operators on segments in modules: values, gradients by autograd, export with other sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.caffe2 import core, workspace
from tests.helpers.torch_release import require_release

pytestmark = pytest.mark.usefixtures("fresh_workspace")

RANDOM = np.random.default_rng(0)
LENGTHS = np.array([0, 2, 0, 4, 0], np.int32)
INDICES = np.array([1, 2, 3, 3, 9, 0], np.int64)
TABLE = RANDOM.normal(size=(10, 4)).astype(np.float32)
WEIGHTS = RANDOM.normal(size=6).astype(np.float32)
ROWS = RANDOM.normal(size=(6, 4)).astype(np.float32)
ROWS[3] = ROWS[4]  # several maxima in a segment
PACKED = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)

# Operator type, arguments, inputs; those of float32 are parameters with gradients.
CASES: list[tuple[str, dict[str, Any], list[Any]]] = [
    ("SparseLengthsSum", {}, [TABLE, INDICES, LENGTHS]),
    ("SparseLengthsMean", {}, [TABLE, INDICES, LENGTHS]),
    ("SparseLengthsWeightedSum", {"grad_on_weights": 1}, [TABLE, WEIGHTS, INDICES, LENGTHS]),
    ("LengthsSum", {}, [ROWS, LENGTHS]),
    ("LengthsMean", {}, [ROWS, LENGTHS]),
    ("LengthsMax", {}, [ROWS, LENGTHS]),
    ("LengthsWeightedSum", {"grad_on_weights": 1}, [ROWS, WEIGHTS, LENGTHS]),
    ("LengthsTopK", {"k": 3}, [WEIGHTS, LENGTHS]),
    ("PackSegments", {"max_length": 5}, [LENGTHS, ROWS]),
    ("AddPadding", {"end_padding_width": 2}, [ROWS, LENGTHS, ROWS[0].copy()]),
    ("RemovePadding", {}, [ROWS, np.array([2, 4], np.int32)]),
    ("ReversePackedSegs", {}, [PACKED, np.array([2, 1, 0], np.int32)]),
    ("SequenceMask", {"mode": "sequence", "fill_val": -1.0}, [ROWS, np.arange(6, dtype=np.int32)]),
    ("TopK", {"k": 2}, [ROWS]),
    ("TopK", {"k": 6}, [ROWS]),
]
OUTPUTS = {"LengthsTopK": 2, "AddPadding": 2, "RemovePadding": 2, "TopK": 2}
NAMED = [pytest.param(*case, id=f"{i}-{case[0]}") for i, case in enumerate(CASES)]


def made(op_type: str, arguments: dict[str, Any], inputs: list[Any]) -> tuple[core.Net, list[Any]]:
    """Return a net of one operator, whose floating inputs are fed, and its other inputs."""
    net = core.Net("one")
    names = [f"X{i}" for i in range(len(inputs))]
    for name, value in zip(names, inputs, strict=True):
        workspace.FeedBlob(name, value)
    outputs = [f"Y{i}" for i in range(OUTPUTS.get(op_type, 1))]
    getattr(net, op_type)(names, outputs, **arguments)
    net.Proto().external_output.append("Y0")
    return net, [n for n, value in zip(names, inputs, strict=True) if value.dtype != np.float32]


def dense(name: str, gradient: Any) -> Any:
    if not isinstance(gradient, core.GradientSlice):
        return workspace.FetchBlob(str(gradient))
    result = np.zeros_like(workspace.FetchBlob(name))
    indices, values = map(str, (gradient.indices, gradient.values))
    np.add.at(result, workspace.FetchBlob(indices), workspace.FetchBlob(values))
    return result


@pytest.mark.parametrize(("op_type", "arguments", "inputs"), NAMED)
def test_gradients_by_autograd_equal_the_gradients_of_the_net(
    op_type: str, arguments: dict[str, Any], inputs: list[Any]
) -> None:
    net, names = made(op_type, arguments, inputs)
    module = caffe2.to_module(net, inputs=names, trainable=True)
    found = module(*[torch.tensor(workspace.FetchBlob(name)) for name in names])
    weights = RANDOM.normal(size=found.shape).astype(np.float32)
    found.backward(torch.tensor(weights))

    workspace.FeedBlob("dY", weights)
    net.AddExternalInput("dY")
    gradients = net.AddGradientOperators({"Y0": "dY"})
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(found.detach().numpy(), workspace.FetchBlob("Y0"), rtol=1e-6)
    for name, parameter in module.named_parameters():
        expected = dense(name, gradients[name])
        np.testing.assert_allclose(parameter.grad.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("op_type", "arguments", "inputs"), NAMED)
def test_an_exported_module_agrees_with_the_module(
    op_type: str, arguments: dict[str, Any], inputs: list[Any]
) -> None:
    net, names = made(op_type, arguments, inputs)
    module = caffe2.to_module(net, inputs=names)
    given = tuple(torch.tensor(workspace.FetchBlob(name)) for name in names)
    exported = torch.export.export(module, given).module()
    # (the module adds by a kernel, in another order)
    torch.testing.assert_close(exported(*given), module(*given), rtol=1e-6, atol=1e-6)


def test_an_exported_module_takes_any_number_of_indices() -> None:
    require_release(2, 9, "export takes the number of indices for a constant")
    net, names = made("SparseLengthsSum", {}, [TABLE, INDICES, LENGTHS])
    module = caffe2.to_module(net, inputs=names)
    exported = torch.export.export(
        module,
        (torch.tensor(INDICES), torch.tensor(LENGTHS)),
        dynamic_shapes=({0: torch.export.Dim("indices")}, {0: torch.export.Dim("segments")}),
    ).module()
    others = torch.tensor([4, 4, 7]), torch.tensor([1, 2], dtype=torch.int32)
    torch.testing.assert_close(exported(*others), module(*others), rtol=0, atol=0)


@pytest.mark.parametrize("op_type", ["SparseLengthsSum", "SparseLengthsMean"])
def test_lengths_of_int64_give_the_results_of_int32(op_type: str) -> None:
    """int32 lengths times a number of NumPy are int64 in NumPy 2, and int32 in NumPy 1."""
    found = []
    for lengths in (LENGTHS, LENGTHS * np.int64(1)):
        workspace.FeedBlob("lengths", lengths)
        workspace.FeedBlob("indices", INDICES)
        workspace.FeedBlob("x", TABLE)
        for x, name in (("x", op_type), ("bytes", f"{op_type}Fused8BitRowwise")):
            workspace.RunOperatorsOnce(
                [
                    core.CreateOperator("FloatToFused8BitRowwiseQuantized", ["x"], ["bytes"]),
                    core.CreateOperator(name, [x, "indices", "lengths"], ["y"]),
                ]
            )
            found.append(workspace.FetchBlob("y"))
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], found[3])
