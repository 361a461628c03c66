# SPDX-License-Identifier: Apache-2.0
"""Gradients of products, powers, and of what gathers and merges rows; see `makers`."""

from __future__ import annotations

from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.makers import MAKERS, gradient_of
from bridge.caffe2.gradients.patterns import carry_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MAKERS"]


@gradient_of("MatMul", "BatchMatMul")
def _product(maker: GradientMaker) -> None:
    """C = op(A) op(B): the gradient of each factor is a product again, transposed as it must."""
    maker.enforce(
        maker.op.type == "MatMul" or not maker.argument("broadcast", 0),
        "does not work with argument 'broadcast'",
    )
    trans_a, trans_b = maker.argument("trans_a", 0), maker.argument("trans_b", 0)
    # The gradient comes second where the factor is transposed in C, as A is, or is not, as B is.
    _factor(maker, 0, 1, bool(trans_a), (trans_b, 1) if trans_a else (0, not trans_b))
    _factor(maker, 1, 0, not trans_b, (1, trans_a) if trans_b else (not trans_a, 0))


def _factor(
    maker: GradientMaker, factor: int, other: int, is_second: bool, transposed: tuple[Any, Any]
) -> None:
    inputs = [maker.I(other), maker.GO(0)] if is_second else [maker.GO(0), maker.I(other)]
    flags = zip(("trans_a", "trans_b"), transposed, strict=True)
    arguments = {name: 1 for name, flag in flags if flag}
    if maker.op.type == "MatMul":
        inputs.append(maker.I(factor))  # has the shape of the result
        arguments["axis_a" if is_second else "axis_b"] = 1
    maker.add(maker.op.type, inputs, [maker.GI(factor)], arguments, copied=False)


@gradient_of("Mul")
def _times(maker: GradientMaker) -> None:
    maker.enforce(
        not maker.I(0) == maker.I(1) == maker.O(0),
        "needs the old value of its inputs: it cannot be in place of both",
    )
    carry_out("$Gradient g0 i0 i1 > 0 1", maker)
    for written, other in ((0, 1), (1, 0)):
        if maker.I(written) == maker.O(0) != maker.I(other):
            # Caffe2 makes one, of the product in place of the factor that was written over.
            maker.set_gradient(other, None)


@gradient_of("Pow")
def _power(maker: GradientMaker) -> None:
    if not maker.has_argument("exponent"):
        _power_of_two(maker)
        return
    exponent = maker.argument("exponent", 0.0)
    in_place = maker.I(0) == maker.O(0)
    maker.enforce(not in_place or exponent != 0, "needs its input where the exponent is 0")
    # x ** (e - 1), or what it is of y = x ** e where x is gone.
    less = 1 - 1 / exponent if in_place else exponent - 1
    x, dx, dy = maker.I(0), maker.GI(0), maker.GO(0)
    power = dx if dx != dy else f"{dx}_autogen_power"  # in place, these two have one name
    maker.add("Pow", [x], [power], {"exponent": less}, copied=False)
    maker.add("Mul", [power, dy], [dx], copied=False)
    maker.add("Scale", [dx], [dx], {"scale": exponent}, copied=False)


def _power_of_two(maker: GradientMaker) -> None:
    """Two inputs, x ** e, where e is perhaps broadcast: e * x ** (e - 1) and log x * x ** e."""
    x, e, y, dy = maker.I(0), maker.I(1), maker.O(0), maker.GO(0)
    maker.enforce(y not in (x, e), "needs both inputs, so it cannot be in place")
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


@gradient_of("Gather")
def _gather(maker: GradientMaker) -> None:
    axis = maker.argument("axis", 0)
    if axis:
        carry_out(f"BatchGatherGradient{{axis={axis}}} i0 i1 g0 > 0", maker)
    elif maker.argument("dense_gradient", 0):
        carry_out("SparseToDense i1 g0 i0 > 0", maker)
    else:
        maker.set_gradient(0, GradientSlice(maker.I(1), maker.GO(0)))


@gradient_of("GatherByKey")
def _gather_by_key(maker: GradientMaker) -> None:
    """Hand the rows back to the tables that they came from, with what went along."""
    given = maker.given[0]
    is_sparse = isinstance(given, GradientSlice)
    inputs = [maker.I(0), *(map(str, given) if isinstance(given, GradientSlice) else [maker.GO(0)])]
    outputs = []
    for i in range(1, len(maker.op.input)):
        made = list(maker.GI_slice(i)) if is_sparse else [maker.GI(i)]
        outputs += [f"_{made[0]}_keys", *made]
    arguments = {"pack_first_input": maker.argument("pack_first_input", 0)}
    maker.add("Partition", inputs, outputs, arguments)


@gradient_of(
    *("SortedSegmentWeightedSum", "UnsortedSegmentWeightedSum"),
    *("SparseSortedSegmentWeightedSum", "SparseUnsortedSegmentWeightedSum"),
)
def _segments(maker: GradientMaker) -> None:
    maker.enforce(
        not maker.argument("grad_on_weights", 0), "does not work with argument 'grad_on_weights'"
    )
    if maker.op.type.startswith("Sparse"):
        carry_out(f"{maker.op.type.removeprefix('Sparse')}Gradient i1 g0 i3 > 0@2", maker)
    else:
        carry_out("$Gradient i1 g0 i2 > 0", maker)


@gradient_of("Slice")
def _slice(maker: GradientMaker) -> None:
    given = len(maker.op.input) > 1
    carry_out("$Gradient i0 i1 i2 g0 > 0" if given else "$Gradient i0 g0 > 0", maker)


# Of each feature: how many inputs, which of them the gradient operator needs, which has a gradient.
_MERGED: dict[str, tuple[int, tuple[int, ...], int, int]] = {
    "MergeMultiListFeatureTensors": (4, (0, 2), 3, 3),
    "MergeMultiMapFeatureTensors": (5, (0, 2), 4, 4),
    "MergeMultiScalarFeatureTensors": (3, (0,), 2, 2),
    "MergeSingleListFeatureTensors": (3, (0, 2), 1, 3),
    "MergeSingleMapFeatureTensors": (4, (0, 3), 2, 4),
    "MergeSingleScalarFeatureTensors": (2, (1,), 0, 2),
}


@gradient_of(*_MERGED)
def _merged(maker: GradientMaker) -> None:
    count, needed, wanted, given = _MERGED[maker.op.type]
    features = range(0, len(maker.op.input), count)
    maker.add(
        maker.op.type + "Gradient",
        [*(maker.I(at + i) for at in features for i in needed), maker.GO(given)],
        [maker.GI(at + wanted) for at in features],
    )
