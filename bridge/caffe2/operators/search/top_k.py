# SPDX-License-Identifier: Apache-2.0
"""TopK and FlexibleTopK: the largest elements, and their gradients."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, OutputCount, operator
from bridge.caffe2.operators.base.checks import INT32, INT64, INTS, require, require_all
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import (
    check_lengths,
    row_indices,
    segment_ids,
)
from bridge.caffe2.operators.search import search_kernels


def sorted_down(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return `x` sorted along `dim`, the greatest first, and the indices; equal ones in order."""
    if torch.onnx.is_in_onnx_export():
        # ONNX's TopK keeps equal elements in order; its exporter knows no stable sort.
        values, indices = torch.sort(x, dim, descending=True)
    else:
        values, indices = torch.sort(x, dim=dim, descending=True, stable=True)
    return values, indices


def top_k_axis(axis: int, x: Tensor) -> int:
    """Return `axis` counted from the front; -1 is the last one, no other may be negative.

    Raises EnforceNotMet: `axis` is out of range.
    """
    axis = x.dim() - 1 if axis == -1 else axis
    require(0 <= axis < x.dim(), f"axis {axis} is one of the dimensions", x)
    return axis


@operator(
    "TopK", types={"ks": INT64}, gradient="$Gradient g0 o1 i0 > 0", outputs="2-3", sized_by=("ks",)
)
def top_k(
    x: Tensor,
    ks: Tensor | None = None,
    *,
    k: int = -1,
    axis: int = -1,
    outputs: OutputCount = 2,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """The `k` largest elements along `axis`, their indices along it, and their flat indices.

    `k` is an argument or input 1. Of equal elements the first ones are selected; missing elements
    have the value 0 and the index -1.
    """
    if k == -1 and ks is not None:
        require(ks.numel() > 0, "input 1 has one element", ks)
        k = int(ks.reshape(-1)[0])
    require(k >= 1, "k is at least 1", k)
    axis = top_k_axis(axis, x)
    outer, n, inner = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    sizes = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    if takes_kernels(x) and (out is None or all(one.is_contiguous() for one in out)):
        made = out
        if made is None:
            made = x.new_empty(sizes), x.new_empty(sizes, dtype=torch.int64)
            if outputs == 3:
                made += (x.new_empty(outer * k * inner, dtype=torch.int64),)
        flat = made[2] if outputs == 3 else None
        run_kernel(search_kernels.top_k, x, made[0], made[1], flat, outer, n, inner, k)
        return tuple(made)
    values, places = sorted_down(x.reshape(outer, n, inner), 1)
    values, places = values[:, :k], places[:, :k]
    if n < k:
        missing = (0, 0, 0, k - n)
        values = torch.nn.functional.pad(values, missing)
        places = torch.nn.functional.pad(places, missing, value=-1)
    found = values.reshape(sizes), places.reshape(sizes)
    if outputs < 3:
        return found
    starts = torch.arange(outer, device=x.device).view(-1, 1, 1) * n * inner
    flat = places * inner + starts + torch.arange(inner, device=x.device)
    return *found, torch.where(places < 0, -1, flat).reshape(-1)


@operator(
    "FlexibleTopK", types={"k": INT64}, gradient="$Gradient i0 i1 g0 o1 > 0", effects=("values",)
)
def flexible_top_k(x: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The k largest elements of each row and their indices, concatenated; k per row is input 1."""
    require(x.dim() > 0, "X has at least one dimension", x)
    ks, columns = k.reshape(-1), x.shape[-1]
    rows = x.reshape(math.prod(x.shape[:-1]), columns)
    require(ks.shape[0] == rows.shape[0], f"there is one k for each of {rows.shape[0]} rows", k)
    require(bool(((ks >= 1) & (ks <= columns)).all()), f"k is from 1 to {columns} in each row", ks)
    values, places = sorted_down(rows, 1)
    taken = torch.arange(columns, device=x.device) < ks[:, None]
    return values[taken], places[taken]


@operator("TopKGradient", types={"indices": INTS}, defaults=top_k)
def top_k_gradient(dy: Tensor, indices: Tensor, x: Tensor, *, axis: int) -> Tensor:
    """(gradients of the largest elements, their indices along `axis`, X) -> dX."""
    require(x.dim() > 0, "X has at least one dimension", x)
    axis = top_k_axis(axis, x)
    require(
        dy.shape == indices.shape
        and dy.shape[:axis] == x.shape[:axis]
        and dy.shape[axis + 1 :] == x.shape[axis + 1 :],
        "gradients and indices have the sizes of X but for the axis",
        dy,
        indices,
        x,
    )
    require_all(indices < x.shape[axis], "indices are in range", indices)
    # Where there were fewer than k elements, the index is -1; gradients from there on are dropped.
    # Of gradients with one index the last counts.
    size = x.shape[axis]
    is_there = (indices >= 0).long().cumprod(axis).bool()
    places = torch.where(is_there, indices, size).long()
    sizes = [*x.shape[:axis], size + 1, *x.shape[axis + 1 :]]
    return x.new_zeros(sizes).scatter(axis, places, dy).narrow(axis, 0, size).contiguous()


@operator("FlexibleTopKGradient", types={"k": INTS, "indices": INTS}, effects=("values",))
def flexible_top_k_gradient(x: Tensor, k: Tensor, dy: Tensor, indices: Tensor) -> Tensor:
    """(X, k of each row, gradients of the largest elements, their indices) -> dX."""
    require(x.dim() > 0, "X has at least one dimension", x)
    ks = k.reshape(-1)
    n, columns = math.prod(x.shape[:-1]), x.shape[-1]
    require(ks.shape[0] == n, f"there is one k for each of {n} rows", k)
    count = dy.numel()
    require(indices.numel() == count, f"there are {count} gradients and indices", indices)
    places = row_indices(indices, columns) + segment_ids(ks, count) * columns
    return x.new_zeros(x.numel()).scatter(0, places, dy.reshape(-1)).view(x.shape)


@operator("LengthsTopKGradient", types={"lengths": INT32, "indices": INT32}, effects=("values",))
def lengths_top_k_gradient(lengths: Tensor, indices: Tensor, dy: Tensor, *, k: int = -1) -> Tensor:
    """(lengths, indices within the segments (n, k), gradients (n, k)) -> dX."""
    require(k >= 1, "k is at least 1", k)
    n = lengths.numel()
    require(
        indices.numel() == dy.numel() == n * k, f"there are {n} times {k} gradients", indices, dy
    )
    check_lengths(lengths)
    each = lengths.view(-1, 1)
    ends = lengths.cumsum(0).view(-1, 1)
    count = int(ends[-1]) if n else 0
    taken = torch.arange(k, device=dy.device) < each
    places = indices.view(n, k)
    bad = taken & ((places < 0) | (places >= each))
    require(not bool(bad.any()), "indices are in range", lengths)
    # A last element takes the gradients of missing elements.
    rows = torch.where(taken, ends - each + places, count)
    return dy.new_zeros(count + 1).scatter(0, rows.view(-1), dy.view(-1))[:count].contiguous()
