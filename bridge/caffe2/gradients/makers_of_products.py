# SPDX-License-Identifier: Apache-2.0
"""Gradients of products and powers; see `makers`."""

from __future__ import annotations

from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.makers import MAKERS, gradient_of
from bridge.caffe2.gradients.patterns import add_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MAKERS"]


@gradient_of("MatMul", "BatchMatMul")
def _product(maker: GradientMaker) -> None:
    """C = op(A) op(B): the gradient of a factor is a product of the other one and of dC."""
    maker.enforce(
        maker.op.type == "MatMul" or not maker.argument("broadcast", 0),
        "does not work with argument 'broadcast'",
    )
    trans_a, trans_b = maker.argument("trans_a", 0), maker.argument("trans_b", 0)
    # dC is the second factor if A is transposed in C, or if B is not.
    _factor(maker, 0, 1, bool(trans_a), (trans_b, 1) if trans_a else (0, not trans_b))
    _factor(maker, 1, 0, not trans_b, (1, trans_a) if trans_b else (not trans_a, 0))


def _factor(
    maker: GradientMaker, factor: int, other: int, is_second: bool, transposed: tuple[Any, Any]
) -> None:
    inputs = [maker.I(other), maker.GO(0)] if is_second else [maker.GO(0), maker.I(other)]
    flags = zip(("trans_a", "trans_b"), transposed, strict=True)
    arguments = {name: 1 for name, flag in flags if flag}
    if maker.op.type == "MatMul":
        inputs.append(maker.I(factor))  # MatMul takes the shape of the result from it
        arguments["axis_a" if is_second else "axis_b"] = 1
    maker.add(maker.op.type, inputs, [maker.GI(factor)], arguments, copied=False)


@gradient_of("Mul")
def _times(maker: GradientMaker) -> None:
    maker.enforce(
        not maker.I(0) == maker.I(1) == maker.O(0),
        "needs the values of its inputs, so it cannot work in place of both",
    )
    add_pattern("$Gradient g0 i0 i1 > 0 1", maker)
    for written, other in ((0, 1), (1, 0)):
        if maker.I(written) == maker.O(0) != maker.I(other):
            # Caffe2 computes one from the product, which overwrote the other factor.
            maker.set_gradient(other, None)


@gradient_of("Pow")
def _power(maker: GradientMaker) -> None:
    if not maker.has_argument("exponent"):
        _power_of_two(maker)
        return
    exponent = maker.argument("exponent", 0.0)
    in_place = maker.I(0) == maker.O(0)
    maker.enforce(not in_place or exponent != 0, "needs its input if the exponent is 0")
    # x ** (e - 1), or y ** (1 - 1 / e) if y = x ** e overwrote x.
    less = 1 - 1 / exponent if in_place else exponent - 1
    x, dx, dy = maker.I(0), maker.GI(0), maker.GO(0)
    power = dx if dx != dy else f"{dx}_autogen_power"  # in place, dx and dy are one blob
    maker.add("Pow", [x], [power], {"exponent": less}, copied=False)
    maker.add("Mul", [power, dy], [dx], copied=False)
    maker.add("Scale", [dx], [dx], {"scale": exponent}, copied=False)


def _power_of_two(maker: GradientMaker) -> None:
    """Pow with two inputs, x ** e; e may be broadcast: e * x ** (e - 1) and log(x) * x ** e."""
    x, e, y, dy = maker.I(0), maker.I(1), maker.O(0), maker.GO(0)
    maker.enforce(y not in (x, e), "needs both inputs, so it cannot work in place")
    dx, de = maker.GI(0), maker.GI(1)
    is_broadcast = maker.argument("broadcast", 0)
    places = {
        "axis": maker.argument("axis", -1),
        "axis_str": maker.argument("axis_str", ""),
        "order": maker.argument("order", "NCHW"),
    }
    broadcast = {"broadcast": 1, **places} if is_broadcast else {}
    before_sum = de + "_autogen_pre_red"
    for op_type, inputs, output, arguments in (
        ("ConstantFill", [e], de, {"value": 1.0}),
        ("Sub", [e, de], de, {}),
        ("Pow", [x, de], dx, broadcast),
        ("Mul", [dx, dy], dx, {}),
        ("Mul", [dx, e], dx, broadcast),
        ("Log", [x], before_sum, {}),
        ("Mul", [before_sum, y], before_sum, {}),
        ("Mul", [before_sum, dy], before_sum if is_broadcast else de, {}),
    ):
        maker.add(op_type, inputs, [output], arguments, copied=False)
    if is_broadcast:
        maker.add("SumReduceLike", [before_sum, e], [de], places, copied=False)
