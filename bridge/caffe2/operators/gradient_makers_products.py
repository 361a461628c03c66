# SPDX-License-Identifier: Apache-2.0
"""Gradients of products, powers, and of what gathers and merges rows; see `gradient_makers`."""

from __future__ import annotations

from bridge.caffe2.gradient_maker import GradientMaker
from bridge.caffe2.gradient_slice import GradientSlice
from bridge.caffe2.operators.gradient_makers import MAKERS
from bridge.caffe2.operators.gradient_patterns import carry_out

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__: list[str] = []


@gradient_of("MatMul", "BatchMatMul")
def _product(maker: GradientMaker) -> None:
    """C = op(A) op(B): the gradient of each factor is a product again, transposed as needed."""
    maker.enforce(
        maker.op.type == "MatMul" or not maker.argument("broadcast", 0),
        "does not work with argument 'broadcast'",
    )
    a, b, c = maker.I(0), maker.I(1), maker.GO(0)
    trans_a, trans_b = maker.argument("trans_a", 0), maker.argument("trans_b", 0)
    for factor, left, right, flags in (
        (0, b, c, (trans_b, 1)) if trans_a else (0, c, b, (0, not trans_b)),
        (1, c, a, (1, trans_a)) if trans_b else (1, a, c, (not trans_a, 0)),
    ):
        arguments = {name: 1 for name, flag in zip(("trans_a", "trans_b"), flags, strict=True) if flag}
        inputs = [left, right]
        if maker.op.type == "MatMul":
            # The third input has the shape of the factor. The gradient of C, a matrix, is where
            # its axis is 1.
            inputs.append(maker.I(factor))
            arguments["axis_a" if c == right else "axis_b"] = 1
        maker.add(maker.op.type, inputs, [maker.GI(factor)], arguments, copied=False)
