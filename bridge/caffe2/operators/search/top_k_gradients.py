# SPDX-License-Identifier: Apache-2.0
"""Gradients of TopK, FlexibleTopK and LengthsTopK."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, INTS, has_values, require
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.search.top_k import top_k, top_k_axis


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
    if has_values(indices):
        require(not bool((indices >= x.shape[axis]).any()), "indices are in range", x)
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
    rows = torch.zeros_like(x).view(-1, x.shape[-1])
    require(ks.shape[0] == rows.shape[0], f"there is one k for each of {rows.shape[0]} rows", k)
    require(bool((ks >= 0).all()), "no k is negative", ks.tolist())
    count = int(ks.sum())
    require(dy.numel() == indices.numel() == count, f"there are {count} gradients and indices", dy)
    places = indices.reshape(-1).long()
    require(bool(((places >= 0) & (places < x.shape[-1])).all()), "indices are in range", x)
    numbers = segment_ids(ks, count)
    return rows.index_put((numbers, places), dy.reshape(-1)).view(x.shape)


@operator("LengthsTopKGradient", types={"lengths": INT32, "indices": INT32}, effects=("values",))
def lengths_top_k_gradient(lengths: Tensor, indices: Tensor, dy: Tensor, *, k: int = -1) -> Tensor:
    """(lengths, indices within the segments (n, k), gradients (n, k)) -> dX."""
    require(k >= 1, "k is at least 1", k)
    n = lengths.numel()
    require(
        indices.numel() == dy.numel() == n * k, f"there are {n} times {k} gradients", indices, dy
    )
    count = segment_ids(lengths).shape[0]
    each = lengths.view(-1, 1)
    starts = lengths.cumsum(0).view(-1, 1) - each
    taken = torch.arange(k, device=dy.device) < each
    places = indices.view(n, k)
    require(bool(((places >= 0) & (places < each))[taken].all()), "indices are in range", lengths)
    rows = (places + starts)[taken].long()
    return dy.new_zeros(count).index_put((rows,), dy.view(n, k)[taken])
