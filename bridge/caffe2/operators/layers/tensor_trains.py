# SPDX-License-Identifier: Apache-2.0
"""Tensor trains: matrices and embeddings as products of small cores.

Follows tt_linear_op.h and lengths_reducer_ops.h in caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, INT64, has_values, require, require_range
from bridge.caffe2.operators.base.rows_and_segments import segment_ids, sum_segments


@operator("TT", gradient="unimplemented")
def tt_linear(
    x: Tensor,
    b: Tensor,
    cores: Tensor,
    *,
    inp_sizes: list[int] | None = None,
    out_sizes: list[int] | None = None,
    tt_ranks: list[int] | None = None,
) -> Tensor:
    """X W + b, (M, K) to (M, N), where W is the product of `cores`, one after another in 1-D.

    Core i is (inp_sizes[i] * tt_ranks[i + 1], tt_ranks[i] * out_sizes[i]), the last one first.
    """
    inner, outer, ranks = inp_sizes or [], out_sizes or [], tt_ranks or []
    require(x.dim() > 1 and b.dim() == cores.dim() == 1, "X is 2-D, b and the cores 1-D", x, cores)
    fits = 0 < len(inner) == len(outer) == len(ranks) - 1
    require(fits, "there is one rank more than sizes", inner, outer, ranks)
    start, y = 0, x.reshape(-1)
    for i in reversed(range(len(inner))):
        rows, columns = inner[i] * ranks[i + 1], ranks[i] * outer[i]
        end = start + rows * columns
        require(y.numel() % rows == 0 and end <= cores.numel(), "the cores fit X", x, cores)
        y = torch.mm(y.reshape(-1, rows), cores[start:end].view(rows, columns))
        y = y.reshape(-1, outer[i]).t().reshape(-1)
        start = end
    y = y.reshape(x.shape[0], -1).t().reshape(x.shape[0], -1)
    require(y.shape[1] == math.prod(outer), "the outputs have the sizes of out_sizes", y, outer)
    return torch.add(y, b)


@operator("TTLinearGradient", inputs="0-*", outputs="0-*", types=None)
def tt_linear_gradient(*inputs: Tensor) -> tuple[Tensor, ...]:
    """Raise EnforceNotMet: Caffe2 has no gradient of TT either."""
    raise EnforceNotMet("The gradient of TT is not implemented, in Caffe2 neither.")


@operator(
    "TTSparseLengthsSum",
    types={"indices": INT64, "lengths": INT32},
    gradient="$Gradient i0 i1 i2 i4 o1 o2 o3 g0 > 0 1 2",
    effects=("values",),
)
def tt_sparse_lengths_sum(
    core0: Tensor,
    core1: Tensor,
    core2: Tensor,
    indices: Tensor,
    lengths: Tensor,
    *,
    factor_i: list[int] | None = None,
    factor_j: list[int] | None = None,
    ranks: list[int] | None = None,
    emb_size: int = 64,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sums of segments of embeddings, each the product of one slice of each core.

    Core k is (factor_i[k], ranks[k], factor_j[k], ranks[k + 1]). Outputs: (segments, emb_size), the
    products of one and of two cores, and the indices of the slices, (indices, 3).
    """
    sizes, parts = factor_i or [1] * 3, factor_j or [1] * 3
    rank = ranks or [1] * 4
    require(indices.dim() == lengths.dim() == 1, "indices and lengths are 1-D", indices, lengths)
    require(len(sizes) == len(parts) == 3 and len(rank) == 4, "there are three cores", sizes, parts)
    require(math.prod(parts) == emb_size, "emb_size is the product of factor_j", parts, emb_size)
    require_range("indices", indices, math.prod(sizes))
    last = indices.div(sizes[0] * sizes[1], rounding_mode="floor")
    middle = (indices % (sizes[0] * sizes[1])).div(sizes[0], rounding_mode="floor")
    places = torch.stack([indices % sizes[0], middle, last], 1)
    made = []
    y: Tensor | None = None
    for k, core in enumerate((core0, core1, core2)):
        slices = core.reshape(sizes[k], rank[k], parts[k] * rank[k + 1])[places[:, k]]
        if y is not None:
            slices = torch.bmm(y, slices)
        y = slices.reshape(len(indices), math.prod(parts[: k + 1]), rank[k + 1])
        made.append(y)
    rows = made[2].reshape(len(indices), emb_size)
    if has_values(lengths):  # rows after the segments count nowhere
        rows = rows[: min(int(lengths.sum()), len(rows))]
    return sum_segments(rows, None, lengths), made[0], made[1], places


@operator("TTSparseLengthsSumGradient", types={"lengths": INT32, "places": INT64})
def tt_sparse_lengths_sum_gradient(
    core0: Tensor,
    core1: Tensor,
    core2: Tensor,
    lengths: Tensor,
    first: Tensor,
    second: Tensor,
    places: Tensor,
    dy: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the cores."""
    n, wide, rank = places.shape[0], *second.shape[1:]
    slices = [core[places[:, k]] for k, core in enumerate((core0, core1, core2))]
    rows = dy.index_select(0, segment_ids(lengths))
    if len(rows) < n:  # rows after the segments have no gradient
        rows = torch.cat([rows, rows.new_zeros(n - len(rows), rows.shape[1])])
    rows = rows.view(n, wide, dy.shape[1] // wide)
    d2 = torch.bmm(second.transpose(1, 2), rows)
    rows = torch.bmm(rows, slices[2].reshape(n, rank, dy.shape[1] // wide).transpose(1, 2))
    rows = rows.view(n, first.shape[1], wide * rank // first.shape[1])
    d1 = torch.bmm(first.transpose(1, 2), rows)
    d0 = torch.bmm(rows, slices[1].reshape(n, first.shape[2], rows.shape[2]).transpose(1, 2))
    found = []
    for k, (core, d) in enumerate(zip((core0, core1, core2), (d0, d1, d2), strict=True)):
        added = d.reshape(n, *core.shape[1:])
        found.append(torch.zeros_like(core).index_add(0, places[:, k], added))
    return found[0], found[1], found[2]


@operator("ConcatBatchMatMulBatchGatherOp", inputs="1-*", types={"indices": INT32},
          effects=("values",))  # fmt: skip
def products_gathered(indices: Tensor, *xs: Tensor) -> Tensor:
    """The products of all pairs of inputs (N, D) by row, as (N, count * count), at the indices."""
    require(bool(xs), "there are inputs after the indices")
    shapes = {one.shape for one in xs}
    require(len(shapes) == 1 and xs[0].dim() > 0, "the inputs have the same sizes", *xs)
    rows = torch.stack([one.flatten(1) for one in xs], 1)
    require_range("indices", indices, len(xs) ** 2)
    products = torch.bmm(rows, rows.transpose(1, 2)).flatten(1)
    return products[:, indices.reshape(-1).long()].view(rows.shape[0], *indices.shape)
