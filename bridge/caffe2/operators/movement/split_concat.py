# SPDX-License-Identifier: Apache-2.0
"""Concat and Split."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.gradients.patterns import add_pattern
from bridge.caffe2.operators.base.checks import INT32, axis_from_front, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.movement import row_kernels


def _axis_of(axis: int | None, order: str | None) -> int:
    """Return `axis`, or the channels of images in `order`."""
    if axis is not None:
        require(order is None, "the arguments axis and order exclude each other")
        return axis
    order = "NCHW" if order is None else order
    if order not in ("NCHW", "NHWC"):
        raise EnforceValueError(f"The order must be NCHW or NHWC, not {order!r}.")
    return order.index("C")


def concat(
    *xs: Tensor,
    axis: int | None = None,
    order: str | None = None,
    add_axis: int = 0,
    out: Out = None,
) -> tuple[Tensor, Tensor]:
    """Concatenate the inputs along an axis, or stack them along a new one with `add_axis`.

    Output 1: the size of each input along the axis, int32.
    """
    first = xs[0]
    stacks = bool(add_axis) and axis is not None
    along = axis_from_front(_axis_of(axis, order), first.dim() + stacks)
    for i, x in enumerate(xs):
        fits = x.dim() == first.dim() and all(
            size == first.shape[dim] for dim, size in enumerate(x.shape) if stacks or dim != along
        )
        if not fits:
            raise EnforceNotMet(
                f"Inputs 0 and {i}, of sizes {list(first.shape)} and {list(x.shape)}, may differ "
                f"only along axis {along}."
            )
    lengths = [1 if stacks else x.shape[along] for x in xs]
    sizes = torch.tensor(lengths, dtype=torch.int32, device=first.device)
    join = torch.stack if stacks else torch.cat
    if out is None:
        return join(xs, along), sizes
    return join(xs, along, out=out[0]), out[1].copy_(sizes)


def split(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    axis: int | None = None,
    order: str | None = None,
    add_axis: int = 0,
    split: list[int] | None = None,
    outputs: OutputCount = 1,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """Split X into parts of sizes `split`, of the sizes in input 1, or of equal sizes.

    With `add_axis` each part is one slice, without the axis.
    """
    along = axis_from_front(_axis_of(axis, order), x.dim())
    rows = x.shape[along]
    narrow = bool(add_axis) and axis is not None
    if lengths is not None:
        require(not split, "the parts are an argument or an input, not both")
        parts = _by_kernel(x, lengths, along, narrow, out)
        if parts is not None:
            return parts
        sizes: list[int] = lengths.reshape(-1).tolist()
        out = None  # which has the sizes that other values asked for
    elif split:
        sizes = split
    else:
        require(rows % outputs == 0, f"{rows} rows can be split into {outputs} equal parts")
        sizes = [rows // outputs] * outputs
    require(len(sizes) == outputs, f"there are as many parts as outputs, {outputs}", sizes)
    return _parts(x, along, [1] * outputs if narrow else sizes, narrow, out)


def _by_kernel(
    x: Tensor, lengths: Tensor, axis: int, narrow: bool, out: Out
) -> tuple[Tensor, ...] | None:
    """Set the buffers to parts of X of these lengths; None: they have other sizes, or no kernel."""
    if out is None or narrow:
        return None
    parts = (out,) if isinstance(out, Tensor) else tuple(out)
    plain = takes_kernels(lengths, dtype=torch.int32)
    if not plain or not takes_kernels(x, *parts, dtype=x.dtype) or lengths.numel() != len(parts):
        return None
    sizes = row_kernels.int32_list(lengths, len(parts))
    before, after = x.shape[:axis], x.shape[axis + 1 :]
    if sum(sizes) != x.shape[axis] or any(
        part.shape != (*before, size, *after) for part, size in zip(parts, sizes, strict=True)
    ):
        return None
    return _divided(x, parts, sizes, lengths, axis)


def _divided(
    x: Tensor, parts: tuple[Tensor, ...], sizes: list[int], lengths: Tensor | None, axis: int
) -> tuple[Tensor, ...]:
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    run_kernel(row_kernels.split, x, list(parts), sizes, lengths, outer, inner, x.element_size())
    return parts


def _parts(x: Tensor, axis: int, sizes: list[int], narrow: bool, out: Out) -> tuple[Tensor, ...]:
    """Return as many slices along `axis` as `sizes` says; `narrow`: without the axis."""
    require(all(size >= 0 for size in sizes), "the parts are not negative", sizes)
    rows = x.shape[axis]
    require(sum(sizes) == rows, f"the parts add up to {rows} rows", sizes)
    parts = x.unbind(axis) if narrow else torch.split(x, sizes, axis)
    if out is None:
        return tuple([part.contiguous() for part in parts])
    outs = (out,) if len(parts) == 1 else tuple(out)
    if len(outs) > 1 and not narrow and takes_kernels(x, *outs, dtype=x.dtype):
        return _divided(x, outs, sizes, None, axis)
    return tuple([one.copy_(part) for one, part in zip(outs, parts, strict=True)])


def _concat_gradient(maker: GradientMaker) -> None:
    if maker.output_gradients[0] is not None:
        add_pattern("Split g0 o1 > *", maker)


for _name in ("Concat", "DepthConcat"):
    operator(_name, types={"xs": "xs"}, inputs="1-*", rearranges=(0,), gradient=_concat_gradient)(
        concat
    )


def _split_gradient(maker: GradientMaker) -> None:
    parts = [maker.GO(i) for i, given in enumerate(maker.output_gradients) if given is not None]
    maker.add("Concat", parts, [maker.GI(0), f"_{maker.I(0)}_grad_dims"])


for _name in ("Split", "DepthSplit"):
    operator(_name, types={"x": None, "lengths": INT32}, gradient=_split_gradient)(split)


@operator(
    "SplitByLengths",
    types={"x": None, "lengths": INT32},
    effects=("values",),
    gradient=_split_gradient,
)
def split_by_lengths(
    x: Tensor,
    lengths: Tensor,
    *,
    axis: int | None = None,
    order: str | None = None,
    use_scaling_lengths: bool = False,
    outputs: OutputCount = 1,
) -> tuple[Tensor, ...]:
    """Split X: input 1 has equally many lengths per output, whose sums are its sizes.

    With `use_scaling_lengths` the lengths are scaled to add up to all slices.
    """
    given: list[int] = lengths.reshape(-1).tolist()
    along = axis_from_front(_axis_of(axis, order), x.dim())
    require(len(given) % outputs == 0, f"the lengths are a multiple of {outputs} outputs", given)
    rows, total = x.shape[along], sum(given)
    scale = 1
    if use_scaling_lengths:
        require(rows % (total or 1) == 0, f"{rows} rows are a multiple of the sum", given)
        scale = rows // total if total else 1
    else:
        require(total == rows, f"the lengths add up to {rows} rows", given)
    each = len(given) // outputs
    sizes = [scale * sum(given[o * each : (o + 1) * each]) for o in range(outputs)]
    return _parts(x, along, sizes, False, None)
