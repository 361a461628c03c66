# SPDX-License-Identifier: Apache-2.0
"""Infinite and very large elements: with gradients wanted, the values are those without."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.caffe2 import core

pytestmark = pytest.mark.usefixtures("fresh_workspace")

INF = float("inf")
LENGTHS = torch.tensor([2, 0, 2], dtype=torch.int32)
LABELS = torch.tensor([1, 0, 2, 1], dtype=torch.int32)
# The operator, the inputs after X, which is (4, 3) or an image, and the arguments.
MODULES: list[tuple[str, list[torch.Tensor], dict[str, Any]]] = [
    ("Max", [torch.tensor([[1.0, -INF, 3.0]] * 4)], {}),
    ("Min", [torch.tensor([[1.0, INF, 3.0]] * 4)], {}),
    ("ReduceMax", [], {"axes": [0], "keepdims": 0}),
    ("ReduceMin", [], {"axes": [1], "keepdims": 1}),
    ("ReduceFrontMax", [], {}),
    ("ReduceBackMax", [], {}),
    ("RowwiseMax", [], {}),
    ("ColwiseMax", [], {}),
    ("LengthsMax", [LENGTHS], {}),
    ("SortedSegmentRangeMax", [torch.tensor([0, 0, 1, 1], dtype=torch.int32)], {}),
    ("MaxPool", [], {"kernel": 2}),
    ("IntegralImage", [], {}),
    ("NegateGradient", [], {}),
    ("LabelCrossEntropy", [LABELS], {}),
    ("CrossEntropy", [torch.ones(4, 3)], {}),
]


def module_of(kind: str, inputs: int, outputs: int = 1, **arguments: Any) -> caffe2.NetModule:
    net = core.Net("net")
    names = [f"x{i}" for i in range(inputs)]
    made = [f"y{o}" for o in range(outputs)]
    net.Proto().op.append(core.CreateOperator(kind, names, made, **arguments))
    return caffe2.to_module(net, inputs=names, outputs=made[-1:])


@pytest.mark.parametrize("value", [INF, -INF, 1e30, -1e30])
@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize(("kind", "more", "arguments"), MODULES, ids=[one[0] for one in MODULES])
def test_values_do_not_depend_on_gradients(
    kind: str, more: list[torch.Tensor], arguments: dict[str, Any], everywhere: bool, value: float
) -> None:
    x = torch.arange(12.0).view(4, 3) / 12
    if kind in ("MaxPool", "IntegralImage"):
        x = x.view(1, 1, 4, 3)
    elif kind.endswith("wiseMax"):
        x = x.view(1, 4, 3)
    if everywhere:
        x.fill_(value)
    else:
        x.view(-1)[4] = value
    module = module_of(kind, 1 + len(more), **arguments)
    found = module(x.clone().requires_grad_(), *more)
    assert found.requires_grad
    torch.testing.assert_close(found.detach(), module(x, *more), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["Max", "ReduceMax", "MaxPool", "LengthsMax"])
def test_infinite_maxima_have_the_gradient(kind: str) -> None:
    """All of several equal elements have it, as in Caffe2."""
    x = torch.tensor([[INF, 1.0, INF, -INF]]).requires_grad_()
    if kind == "Max":
        found = module_of(kind, 2)(x, torch.full((1, 4), 2.0))
    elif kind == "LengthsMax":
        found = module_of(kind, 2)(x.view(4), torch.tensor([4], dtype=torch.int32))
    elif kind == "MaxPool":
        found = module_of(kind, 1, kernel_h=1, kernel_w=4)(x.view(1, 1, 1, 4))
    else:
        found = module_of(kind, 1)(x)
    (gradient,) = torch.autograd.grad(found.sum(), x)
    assert gradient.tolist() == [[1, 0, 1, 0]]


@pytest.mark.parametrize("gap", [1e3, 1e6, 1e8, 1e30])
@pytest.mark.parametrize("kind", ["SoftmaxWithLoss", "SpatialSoftmaxWithLoss"])
def test_the_loss_of_a_certain_mistake_is_exact(kind: str, gap: float) -> None:
    """It is bounded by that of a probability of 1e-20, its gradient is not, as in Caffe2."""
    x = torch.tensor([[gap, 0.0]])
    if kind == "SoftmaxWithLoss":
        x.requires_grad_()
        loss = module_of(kind, 2, 2, label_prob=1)(x, torch.tensor([[0.0, 1.0]]))
    else:
        x = x.view(1, 2, 1, 1).requires_grad_()
        loss = module_of(kind, 2, 2)(x, torch.ones(1, 1, 1, dtype=torch.int32))
    np.testing.assert_allclose(loss.item(), -math.log(1e-20), rtol=1e-6)
    (gradient,) = torch.autograd.grad(loss, x)
    assert gradient.flatten().tolist() == [1, -1]
