# SPDX-License-Identifier: Apache-2.0
"""torch.ops._caffe2: operators that are functions, as operators of torch."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2.definitions.operator_types import RegisteredOperators
from bridge.integrations import torch_operators

OPS = torch.ops._caffe2
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(0))


def linear(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    hidden = OPS.FC(x, w, b)
    first, second = OPS.Split(hidden, axis=1, outputs=2)
    result: torch.Tensor = OPS.LeakyRelu(first, alpha=0.25) * OPS.Sigmoid(second)
    return result


def by_torch(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    first, second = torch.nn.functional.linear(x, w, b).chunk(2, 1)
    return torch.nn.functional.leaky_relu(first, 0.25) * second.sigmoid()


def test_an_operator_gives_values_and_gradients_of_torch() -> None:
    w = torch.ones(8, 6).requires_grad_()
    b = torch.arange(8.0).requires_grad_()
    linear(X, w, b).sum().backward()
    torch.testing.assert_close(linear(X, w, b), by_torch(X, w, b))
    wanted = torch.autograd.grad(by_torch(X, w, b).sum(), [w, b])
    for one, other in zip((w, b), wanted, strict=True):
        torch.testing.assert_close(one.grad, other)


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # torch's own
def test_an_operator_is_compiled_and_exported() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return linear(x, w, b)

    inputs = X, torch.ones(8, 6), torch.arange(8.0)
    wanted = by_torch(*inputs)
    compiled = torch.compile(linear, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*inputs), wanted)
    exported = torch.export.export(Module(), inputs)
    torch.testing.assert_close(exported.module()(*inputs), wanted)
    torch.testing.assert_close(exported.run_decompositions().module()(*inputs), wanted)


@pytest.mark.parametrize(
    ("name", "inputs", "arguments", "wanted"),
    [
        ("Relu", [X], {}, X.relu()),
        ("Concat", [[X, X]], {"axis": 0}, (torch.cat([X, X]), torch.tensor([4, 4]).int())),
        ("MaxPool", [X.view(1, 1, 4, 6)], {"kernel": 2}, None),
        ("MaxPool", [X.view(1, 1, 4, 6)], {"kernels": [2, 2], "strides": [1, 1]}, None),
        ("ConstantFill", [], {"shape": [2], "value": 2.5}, torch.full((2,), 2.5)),
        ("ConstantFill", [], {"shape": [2], "value": 2, "dtype": 2}, torch.tensor([2, 2]).int()),
        ("GivenTensorIntFill", [], {"values": [1, 2], "shape": [2]}, torch.tensor([1, 2]).int()),
        ("Dropout", [X], {"is_test": 1}, [X]),
        ("Cast", [torch.tensor([1.5])], {"to": 2}, torch.tensor([1]).int()),
    ],
)
def test_operators_take_inputs_and_arguments_of_each_kind(
    name: str, inputs: list[object], arguments: dict[str, object], wanted: object
) -> None:
    found = getattr(OPS, name)(*inputs, **arguments)
    if wanted is None:
        wanted = torch.max_pool2d(X.view(1, 1, 4, 6), 2, 1)
    torch.testing.assert_close(found, wanted)


def test_operators_take_inputs_of_any_strides() -> None:
    x, y, dz = X.t(), X.t() + 1, torch.arange(1.0, 7)
    for found in zip(
        OPS.SquaredL2DistanceGradient(x, y, dz),
        OPS.SquaredL2DistanceGradient(x.contiguous(), y.contiguous(), dz),
        strict=True,
    ):
        torch.testing.assert_close(*found)
    torch.testing.assert_close(OPS.DotProduct(x, y), (x * y).sum(1))


def test_in_training_there_are_more_outputs() -> None:
    y, mask = OPS.Dropout(X, is_test=0)
    assert (y[~mask] == 0).all()
    ones = torch.ones(6)
    assert len(OPS.SpatialBN(X, ones, ones, ones, ones, is_test=0)) == 5
    (y,) = OPS.SpatialBN(X, ones, ones, ones, ones, is_test=1, outputs=1)
    torch.testing.assert_close(y, X, rtol=1e-4, atol=1e-4)


def test_each_declared_operator_is_there() -> None:
    names = [name for name in RegisteredOperators() if "_ENGINE_" not in name]
    declared = [name for name in names if torch_operators._declaration(name) is not None]
    assert len(declared) > 500
    assert [name for name in declared if not hasattr(OPS, name)] == []
    assert set(declared) <= set(dir(OPS))
    assert OPS.FC.default._schema.arguments[2].name == "b"


def test_arguments_of_groups_have_names() -> None:
    """A class that several arguments describe says which they are."""
    for name in RegisteredOperators():
        declaration = torch_operators._declaration(name)
        for one in () if declaration is None else declaration.arguments:
            group = one.group
            if group is not None and group.__module__.startswith("bridge."):
                assert group.takes, f"{name}: {group}"


def test_others_are_not_there() -> None:
    for name in ("Save", "NoSuchOperator", "_private"):
        with pytest.raises(AttributeError, match=name):
            getattr(OPS, name)
    with pytest.raises(c10.EnforceNotMet, match="kernel"):
        OPS.MaxPool(X.view(1, 1, 4, 6), kernel=9)


def test_the_latest_declaration_counts() -> None:
    def declare(factor: float) -> None:
        @caffe2.operator("TimesForTorchOps")
        def times(x: torch.Tensor) -> torch.Tensor:
            return factor * x

    declare(2)
    torch.testing.assert_close(OPS.TimesForTorchOps(X), 2 * X)
    declare(3)
    torch.testing.assert_close(OPS.TimesForTorchOps(X), 3 * X)


@pytest.mark.parametrize("order", ["torch, bridge.caffe2", "bridge.caffe2, torch"])
def test_operators_are_there_in_either_order_of_imports(order: str) -> None:
    program = (
        f"import {order}, sys\n"
        "assert 'bridge.caffe2.operators' not in sys.modules\n"
        "print(torch.ops._caffe2.Relu(torch.tensor([-1.0, 2.0])).tolist())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "[0.0, 2.0]", done.stderr
