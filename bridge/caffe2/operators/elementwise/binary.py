# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions of two inputs, and their gradients: dA and dB, summed where broadcast.

Sizes broadcast as in NumPy, or with the argument `broadcast` in Caffe2's older way: the dimensions
of input 1 are the last ones of input 0, or those from `axis` on; `axis_str` names the axis by a
letter of `order`. Follows elementwise_ops.h and elementwise_ops_utils.cc in caffe2/operators,
PyTorch 1.8.1.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import InPlace, OperatorType, Out, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.checks import (
    BOOL,
    NUMBERS,
    NUMBERS_AND_BOOL,
    assert_traced,
    broadcast_sizes,
    has_values,
    require,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.elementwise import small_kernels

_DISCRETE = (c10.int32, c10.int64, c10.bool)

# What `small_kernels.combine` computes for a few elements, by the name of the torch function.
_SIGNS = {"add": 1, "sub": -1, "mul": 0}

# Elements up to which a kernel takes a value per channel: 12 microseconds for as many, by torch 9,
# but a net binds its calls faster. With it, and the kernel of small convolutions, DenseNet-121 on
# an image of 64 pixels takes 0.9 ms, without them 1.5.
_MOST_BY_CHANNEL = 1 << 16


def axis_of(axis: int, axis_str: str, order: str) -> int:
    """Return `axis`, or the place of the letter `axis_str` in `order`.

    Raises EnforceNotMet: both are given, or there is no such letter.
    """
    if not axis_str:
        return axis
    require(axis == -1, "the arguments axis and axis_str exclude each other", axis, axis_str)
    require(len(axis_str) == 1 and axis_str in order, f"axis_str is one of {order!r}", axis_str)
    return order.index(axis_str)


def aligned(a: Tensor, b: Tensor, axis: int) -> Tensor:
    """Return a view of `b` that broadcasts with `a` as in NumPy; `axis` -1: the last dimensions.

    Leading and trailing sizes of 1 are stretched, others are not.
    Raises EnforceNotMet: the sizes differ from those of the matching dimensions of `a`.
    """
    if b.numel() == 1:
        return b.reshape(())
    spare = a.dim() - b.dim()
    axis = spare if axis == -1 else axis
    if spare < 0 or not 0 <= axis <= spare:
        raise EnforceNotMet(
            f"Sizes {list(b.shape)} do not fit into {list(a.shape)} from axis {axis} on.",
            condition="axis >= 0 && axis <= A.dim() - B.dim()",
        )
    sizes = list(b.shape)
    inner = [i for i, size in enumerate(sizes) if size != 1]
    for i in range(inner[0], inner[-1] + 1) if inner else ():
        if a.shape[axis + i] != sizes[i]:
            raise EnforceNotMet(
                f"Sizes {sizes} do not match {list(a.shape)} from axis {axis} on.",
                condition="A.size(i + axis) == B.size(i)",
            )
    if axis == spare:
        return b
    return b.reshape([1] * axis + sizes + [1] * (spare - axis))


class Broadcast:
    """Whether and where input 1 is broadcast, by the arguments named above.

    `is_set`: whether by them, and not as in NumPy. Raises EnforceNotMet: with `broadcast`, as
    `axis_of`; for Pow also axes without it.
    """

    takes = "bool broadcast, int axis, str axis_str, str order"

    def __init__(self, arguments: Arguments) -> None:
        self.is_set = arguments.single("broadcast", False)
        axis, axis_str = arguments.single("axis", -1), arguments.single("axis_str", "")
        if self.is_set:
            axis = axis_of(axis, axis_str, arguments.single("order", "NCHW"))
        elif arguments.type == "Pow" and arguments.inputs == 2:
            fits = axis == -1 and not axis_str
            require(fits, "broadcast=1 is set for the arguments axis and axis_str")
        self._axis = axis

    def view(self, a: Tensor, b: Tensor) -> Tensor:
        """Return `b`, or a view of it, that broadcasts with `a` as in NumPy.

        Raises EnforceNotMet: with `broadcast`, the sizes do not match.
        """
        return aligned(a, b, self._axis) if self.is_set else b


def _matched(a: Tensor, b: Tensor, broadcast: Broadcast, in_place: InPlace | None) -> Tensor:
    """Return `b`, or a view of it, that broadcasts with `a` as in NumPy."""
    if broadcast.is_set:
        fits = not in_place or in_place[0] != 1
        require(fits, "with broadcast=1 the output is not in place of input 1")
        return broadcast.view(a, b)
    if a.shape != b.shape:
        try:
            sizes = broadcast_sizes(a.shape, b.shape)
        except RuntimeError as cause:
            raise EnforceNotMet(
                f"Sizes {list(a.shape)} and {list(b.shape)} do not broadcast together."
            ) from cause
        if in_place:
            replaced = b if in_place[0] else a
            require(
                sizes == replaced.shape,
                f"the result has the sizes of input {in_place[0]}, which it is in place of",
                list(sizes),
                replaced,
            )
    return b


def _planes_of(out: Tensor | None, x: Tensor, b: Tensor) -> tuple[int, int, int] | None:
    """Return the numbers of images, channels and elements of a plane, if `b` has one per channel.

    `b` broadcasts with `x` as in NumPy. None: it does not, or no kernel computes on these.
    """
    if out is None or out.shape != x.shape or b.dim() > x.dim() or b.numel() < 2:
        return None
    before = x.dim() - b.dim()
    channels = [before + i for i, size in enumerate(b.shape) if size != 1]
    if len(channels) != 1 or x.shape[channels[0]] != b.numel() or not takes_kernels(out, x, b):
        return None
    at = channels[0]
    planes = math.prod(x.shape[:at]), x.shape[at], math.prod(x.shape[at + 1 :])
    return planes if planes[2] >= 16 and out.numel() <= _MOST_BY_CHANNEL else None


def _declare(name: str, function: str, types: Any, **declaration: Any) -> None:
    """Declare the torch function `function` of two tensors as the operator `name`."""
    sign = _SIGNS.get(function)

    def compute(
        a: Tensor,
        b: Tensor,
        *,
        broadcast: Broadcast,
        in_place: InPlace | None = None,
        out: Out = None,
    ) -> Tensor:
        other = _matched(a, b, broadcast, in_place)
        if sign is not None and takes_few(out, a, other) and a.shape == other.shape:
            return run_kernel(small_kernels.combine, a, other, out, sign, a.numel())
        if function in ("add", "mul") and (planes := _planes_of(out, a, other)) is not None:
            adds = function == "add"
            return run_kernel(small_kernels.by_channel, a, other, out, *planes, adds)
        return getattr(torch, function)(a, other, out=out)

    compute.__doc__ = f"torch.{function} of each pair of elements."
    compute.__name__ = compute.__qualname__ = function
    operator(name, types=types, **declaration)(compute)


_declare("Add", "add", NUMBERS, inplace="0>0,1>0", gradient="$Gradient g0 i0 i1 > 0 1")
_declare("Sub", "sub", NUMBERS, inplace="0>0,1>0", gradient="$Gradient g0 i0 i1 > 0 1")


def _times_gradient(maker: GradientMaker) -> None:
    maker.enforce(
        not maker.I(0) == maker.I(1) == maker.O(0),
        "needs the values of its inputs, so it cannot work in place of both",
    )
    add_pattern("$Gradient g0 i0 i1 > 0 1", maker)
    for written, other in ((0, 1), (1, 0)):
        if maker.I(written) == maker.O(0) != maker.I(other):
            # Caffe2 computes one from the product, which overwrote the other factor.
            maker.set_gradient(other, None)


_declare("Mul", "mul", NUMBERS, inplace="0>0,1>0", gradient=_times_gradient)

for _name, _function, _types in (
    ("And", "logical_and", BOOL),
    ("Or", "logical_or", BOOL),
    ("Xor", "logical_xor", BOOL),
    ("BitwiseAnd", "bitwise_and", _DISCRETE),
    ("BitwiseOr", "bitwise_or", _DISCRETE),
    ("BitwiseXor", "bitwise_xor", _DISCRETE),
):
    _declare(_name, _function, _types, inplace="0>0", gradient="undefined")

for _name, _function in (
    ("EQ", "eq"),
    ("NE", "ne"),
    ("LT", "lt"),
    ("LE", "le"),
    ("GT", "gt"),
    ("GE", "ge"),
):
    _declare(_name, _function, NUMBERS_AND_BOOL, gradient="undefined")


@operator("Div", inplace="0>0", types=NUMBERS, gradient="$Gradient g0 i0 i1 o0 > 0 1")
def div(
    a: Tensor, b: Tensor, *, broadcast: Broadcast, in_place: InPlace | None = None, out: Out = None
) -> Tensor:
    """A / B; the quotient of integers is rounded towards zero, and wraps around.

    Raises EnforceNotMet: an integer is divided by 0.
    """
    other = _matched(a, b, broadcast, in_place)
    if a.is_floating_point():
        return torch.div(a, other, out=out)
    return _quotient(a, other, out)


def _quotient(a: Tensor, b: Tensor, out: Out = None) -> Tensor:
    """Return the quotient of integers. Raises EnforceNotMet: one is divided by 0.

    The processor ends the process where it divides by 0, or the lowest number by -1.
    """
    negates = b == -1
    if has_values(b):
        require(bool((b != 0).all()), "no integer is divided by zero")
        if not bool(negates.any()):
            return torch.div(a, b, rounding_mode="trunc", out=out)
    else:
        assert_traced(b, "no integer is divided by zero", lambda x: x != 0)
        negates = negates | (b == 0)
    quotient = torch.div(a, b.masked_fill(negates, 1), rounding_mode="trunc")
    return torch.where(negates, -quotient, quotient, out=out)


def _power_gradient(maker: GradientMaker) -> None:
    if not maker.has_argument("exponent"):
        _power_of_two_gradient(maker)
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


def _power_of_two_gradient(maker: GradientMaker) -> None:
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


@operator("Pow", inplace="0>0,1>0", gradient=_power_gradient)
def pow_(
    a: Tensor,
    b: Tensor | None = None,
    *,
    exponent: float | None = None,
    broadcast: Broadcast,
    in_place: InPlace | None = None,
    out: Out = None,
) -> Tensor:
    """A ** `exponent`, or A ** B, where B broadcasts only with `broadcast`."""
    if b is None:
        require(exponent is not None, "there is the argument exponent, or an input 1")
        assert exponent is not None
        return torch.pow(a, exponent, out=out)
    if not broadcast.is_set:
        require(a.shape == b.shape, "A and B have the same sizes, unless broadcast is set", a, b)
    other = _matched(a, b, broadcast, in_place)
    return torch.pow(a, other, out=out)


def _wide(
    dc: Tensor, a: Tensor, b: Tensor, broadcast: Broadcast, out: Out = None
) -> tuple[Tensor, Tensor, Out]:
    """Return B as a view that broadcasts with A, dC in the shape of both, and `out`.

    dC may have another shape with as many elements; `out` is left out then.
    """
    wide = broadcast.view(a, b)
    shape: tuple[int, ...] = (-1,)  # which no tensor has
    with contextlib.suppress(RuntimeError):
        shape = broadcast_sizes(a.shape, wide.shape)
    if shape == dc.shape:
        return wide, dc, out
    require(math.prod(shape) == dc.numel(), "A and B broadcast to the shape of dC", a, b, dc)
    return wide, dc.reshape(shape), None


def _folded(gradient: Tensor, wide: Tensor, shape: torch.Size, dc: Tensor) -> Tensor:
    """Return a gradient summed to the shape of `wide`, in `shape`; always a new tensor."""
    if gradient.shape != wide.shape:
        found = gradient.sum_to_size(wide.shape)
        gradient = found if found.dtype == dc.dtype else found.to(dc.dtype)
    elif gradient is dc:
        gradient = dc.clone()
    return gradient.view(shape)


def _is_plain(out: Out, a: Tensor, b: Tensor) -> bool:
    """Return whether the results can be written to `out`: nothing is broadcast."""
    return out is not None and a.shape == b.shape


@operator("AddGradient", inplace="0>0,0>1", types=NUMBERS)
@operator("SubGradient", inplace="0>0,0>1", types=NUMBERS)
def add_gradient(
    dc: Tensor, a: Tensor, b: Tensor, *, broadcast: Broadcast, kind: OperatorType, out: Out = None
) -> tuple[Tensor, Tensor]:
    """dA = dC, and dB = dC, or -dC of a difference."""
    wide, dc, out = _wide(dc, a, b, broadcast, out)
    negates = kind == "SubGradient"
    if _is_plain(out, a, b):
        da, db = out
        da = da if da is dc else da.copy_(dc)
        if negates:
            return da, torch.neg(dc, out=db)
        return da, db if db is dc else db.copy_(dc)
    return _folded(dc, a, a.shape, dc), _folded(-dc if negates else dc, wide, b.shape, dc)


@operator("MulGradient", inplace="0>0,0>1", types=NUMBERS)
def mul_gradient(
    dc: Tensor, a: Tensor, b: Tensor, *, broadcast: Broadcast, out: Out = None
) -> tuple[Tensor, Tensor]:
    """dA = dC * B, dB = dC * A."""
    wide, dc, out = _wide(dc, a, b, broadcast, out)
    if _is_plain(out, a, b):
        if out[1] is dc:
            return torch.mul(dc, b, out=out[0]), torch.mul(dc, a, out=out[1])
        db = torch.mul(dc, a, out=out[1])
        return torch.mul(dc, b, out=out[0]), db
    return _folded(dc * wide, a, a.shape, dc), _folded(dc * a, wide, b.shape, dc)


@operator("DivGradient", inplace="0>0", types=NUMBERS)
def div_gradient(
    dc: Tensor, a: Tensor, b: Tensor, c: Tensor | None = None, *, broadcast: Broadcast
) -> tuple[Tensor, Tensor]:
    """dA = dC / B, dB = -dC * C / B. Without `c` the inputs are (B, C, dC), as in older nets."""
    if c is None:
        dc, a, b = b, a, dc
        c = a
    wide, dc, _ = _wide(dc, a, b, broadcast)
    c = c.reshape(dc.shape)
    if dc.is_floating_point():
        da, db = dc / wide, -dc * c / wide
    else:
        da, db = _quotient(dc, wide), _quotient(-dc * c, wide)
    return _folded(da, a, a.shape, dc), _folded(db, wide, b.shape, dc)
