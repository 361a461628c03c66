# SPDX-License-Identifier: Apache-2.0
"""Gradients by torch's autograd of operators that are functions are those of Caffe2's operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.execution.function_operator import FunctionOperator
from bridge.caffe2.execution.registry import class_for
from tests.caffe2.operators.test_functions import definition_of, function_cases
from tests.conformance.operators.case import Case

pytestmark = pytest.mark.usefixtures("fresh_workspace")


# Cases whose gradient in Caffe2 is not the derivative of what the operator computes: SpatialBN in
# test mode reads the variance as 1 / deviation, LambdaRankNdcg has the gradient of another function
# by design, and these two refuse or cut a gradient of other sizes than the output.
# Operators whose gradients are of output 0 only; the others are what the gradient operator needs.
OF_FIRST_OUTPUT = ("HSoftmax", "TTSparseLengthsSum")
OTHER_GRADIENTS = ("SpatialBN_test", "LambdaRankNdcg", "PackSegments_shorter", "LengthsTopK_wrong")

# What the gradient operators refuse, in Caffe2 too; autograd has a gradient there.
REFUSED = {
    "activations-DotProductWithPadding_not_divisible",
    "products-MatMul_axes",
    "products-MatMul_axes,_transposed",
    "shape-Tile_none",
}


def with_gradients() -> list[Any]:
    """Return the cases of finite numbers whose operator has gradient operators.

    But not ReduceFront... and ReduceBack... with a length of 0: Caffe2 counts one element then, and
    gives it no gradient.
    """
    found = []
    for parameter in function_cases(6):
        case = parameter.values[0]
        op_type, inputs, outputs, args = case.steps[0]
        if op_type.endswith("Gradient") or set(inputs) & set(outputs) or "zero length" in case.name:
            continue
        if any(name in str(parameter.id) for name in OTHER_GRADIENTS):
            continue
        feeds = [np.asarray(case.feeds[name]) for name in inputs]
        if not all(one.dtype.kind in "fiub" and np.isfinite(one).all() for one in feeds):
            continue
        op = core.CreateOperator(op_type, inputs, outputs, **args)
        try:
            operators, grads = core.GradientRegistry.GetGradientForOp(
                op, [f"{o}_g" for o in outputs]
            )
        except EnforceNotMet:
            continue
        if any(
            isinstance(grad, str) and feed.dtype.kind == "f"
            for grad, feed in zip(grads, feeds, strict=True)
        ):
            refused = parameter.id in REFUSED
            found.append(pytest.param(case, operators, grads, refused, id=parameter.id))
    return found


@pytest.mark.parametrize(("case", "operators", "grads", "refused"), with_gradients())
def test_gradients_by_autograd_equal_the_gradients_of_the_operator(
    case: Case, operators: list[Any], grads: list[Any], refused: bool
) -> None:
    definition = definition_of(case)
    cls = class_for(definition, "test")
    assert issubclass(cls, FunctionOperator)
    bound = cls.check(definition)
    for name, value in case.feeds.items():
        workspace.FeedBlob(name, value)
    operands = [torch.tensor(workspace.FetchBlob(name)) for name in definition.inputs]
    leaves = [
        i for i, one in enumerate(operands) if one.is_floating_point() and isinstance(grads[i], str)
    ]
    for i in leaves:
        operands[i].requires_grad_()
    found = bound.function(*operands, **bound.arguments)
    results = list(found) if isinstance(found, (tuple, list)) else [found]
    workspace.RunOperatorOnce(core.CreateOperator(*case.steps[0][:3], **case.steps[0][3]))
    random = np.random.RandomState(0)
    pairs = []
    for name, result in zip(definition.outputs, results, strict=False):
        if result is None:
            continue
        dy = random.randn(*result.shape) if result.is_floating_point() else np.zeros(result.shape)
        if definition.type in OF_FIRST_OUTPUT and name != definition.outputs[0]:
            dy = np.zeros(result.shape)
        dy = np.asarray(dy, workspace.FetchBlob(name).dtype)
        workspace.FeedBlob(f"{name}_g", dy)
        if result.requires_grad:
            pairs.append((result, torch.tensor(dy)))
    if refused:
        with pytest.raises(EnforceNotMet):
            workspace.RunOperatorsOnce(operators)
        return
    workspace.RunOperatorsOnce(operators)
    wanted = [torch.tensor(workspace.FetchBlob(grads[i])) for i in leaves]
    given = torch.autograd.grad(
        [y for y, _ in pairs],
        [operands[i] for i in leaves],
        [dy for _, dy in pairs],
        allow_unused=True,
    )
    for expected, actual in zip(wanted, given, strict=True):
        actual = torch.zeros_like(expected) if actual is None else actual
        scale = max(float(expected.abs().max()), 0.1) if expected.numel() else 0.0
        torch.testing.assert_close(
            actual, expected.view(actual.shape), rtol=1e-5, atol=1e-5 * scale, equal_nan=True
        )
