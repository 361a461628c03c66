# SPDX-License-Identifier: Apache-2.0
"""Buckets by boundaries or by hashes, one-hot encodings, histograms and quantiles."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from bridge.c10.errors import EnforceIndexError
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, FLOATS, INT32, INT64, INTS, require
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.base.rows_and_segments import (
    check_lengths,
    check_rows,
    counts_of,
    segment_ids,
)
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.movement import row_kernels


@operator("Bucketize")
def bucketize(x: Tensor, *, boundaries: list[float] | None = None) -> Tensor:
    """The bucket of each element between `boundaries`, int32; 0 for NaN."""
    edges = boundaries or []
    require(edges == sorted(edges), "the boundaries are sorted", edges)
    require(x.dim() >= 1, "X has at least one dimension", x)
    found = torch.bucketize(x, x.new_tensor(edges), out_int32=True)
    return torch.where(x.isnan(), 0, found)


def _lists(values: Tensor, lengths: Tensor) -> list[Tensor]:
    """Return the values as a list of tensors of these lengths, one per column."""
    flat = values.reshape(-1)
    check_lengths(lengths.reshape(-1), flat.shape[0])
    return list(torch.split(flat, lengths.reshape(-1).tolist()))


@operator(
    "BatchBucketize",
    types={"indices": INT32, "lengths": INT32},
    gradient="none",
    effects=("values",),
)
def batch_bucketize(x: Tensor, indices: Tensor, boundaries: Tensor, lengths: Tensor) -> Tensor:
    """The buckets of the columns of X at `indices`, with boundaries per column."""
    columns = indices.reshape(-1).tolist()
    require(x.dim() == 2, "X has two dimensions", x)
    require(indices.dim() == 1, "the indices have one dimension", indices)
    lists = _lists(boundaries, lengths)
    fits = len(lists) == len(columns)
    require(fits, "there is one list of boundaries per column index", lengths, indices)
    if any(not 0 <= column < x.shape[1] for column in columns):
        raise EnforceIndexError(f"An index of {columns} is out of range for {x.shape[1]} columns.")
    found = [
        torch.bucketize(x[:, column].contiguous(), edges, out_int32=True)
        for column, edges in zip(columns, lists, strict=True)
    ]
    if not found:
        return x.new_zeros((x.shape[0], 0), dtype=torch.int32)
    return torch.stack(found, 1)


def _one_hot(indices: Tensor, size: Tensor, rows: Tensor, n: int) -> Tensor:
    """Return `n` rows of zeros, with 1 at the index for each of `rows`."""
    require(size.numel() == 1, "the length of rows is one number", size)
    length = int(size)
    check_rows(indices, length)
    length = max(length, 0)
    zeros = torch.zeros(n * length, dtype=torch.float32, device=indices.device)
    return zeros.index_fill(0, rows * length + indices, 1.0).view(n, length)


@operator("OneHot", types=INT64, gradient="none", effects=("values",))
def one_hot(indices: Tensor, index_size: Tensor, *, out: Out = None) -> Tensor:
    """Rows of `index_size` elements with 1 at the index, else 0; float32."""
    require(indices.dim() == 1, "the indices have one dimension", indices)
    n = indices.shape[0]
    if takes_kernels(indices, dtype=indices.dtype) and index_size.numel() == 1:
        length = max(int(index_size), 0)
        if out is None or out.shape != (n, length):
            out = indices.new_empty((n, length), dtype=torch.float32)
        return row_kernels.one_hot(out, indices, n, length)
    return _one_hot(indices, index_size, torch.arange(n, device=indices.device), n)


@operator(
    "SegmentOneHot",
    types={"lengths": INT32, "indices": INT64, "index_size": INT64},
    gradient="none",
    effects=("values",),
)
def segment_one_hot(lengths: Tensor, indices: Tensor, index_size: Tensor) -> Tensor:
    """Rows of `index_size` elements with 1 at the indices of each segment; float32."""
    fits = lengths.dim() == 1 and indices.dim() == 1
    require(fits, "lengths and indices have one dimension", lengths, indices)
    ids = segment_ids(lengths, indices.shape[0])
    return _one_hot(indices, index_size, ids, lengths.shape[0])


@operator(
    "BatchOneHot",
    types={"x": INTS, "lengths": INT32, "values": "x"},
    gradient="none",
    effects=("values",),
)
def batch_one_hot(x: Tensor, lengths: Tensor, values: Tensor) -> Tensor:
    """Whether each column of X equals each of its values; of the type of X."""
    require(x.dim() >= 1, "X has at least one dimension", x)
    lists = _lists(values, lengths)
    if not x.numel():
        return x.new_zeros(x.shape[0], values.numel())
    rows = x.reshape(x.shape[0], math.prod(x.shape[1:]))
    require(len(lists) == rows.shape[1], "there is one length per column", lengths, x)
    found = [rows[:, column, None] == one for column, one in enumerate(lists)]
    return torch.cat(found, 1).to(x.dtype)


@operator("BatchBucketOneHot", types={"lengths": INT32}, effects=("values",))
def batch_bucket_one_hot(x: Tensor, lengths: Tensor, boundaries: Tensor) -> Tensor:
    """One-hot buckets of each column of X, by boundaries per column; float32."""
    require(x.dim() == 2, "X has two dimensions", x)
    lists = _lists(boundaries, lengths)
    require(len(lists) == x.shape[1], "there is one length per column", lengths, x)
    found = []
    for column, edges in enumerate(lists):
        require(edges.shape[0] > 0, f"there are boundaries for column {column}", lengths.tolist())
        given = x[:, column].contiguous()
        # The middle one of the buckets between equal boundaries.
        place = torch.bucketize(given, edges) + torch.bucketize(given, edges, right=True)
        numbers = torch.arange(edges.shape[0] + 1, device=x.device)
        found.append(torch.div(place, 2, rounding_mode="floor")[:, None] == numbers)
    return torch.cat(found, 1).float() if found else x.new_zeros((x.shape[0], 0))


def _elements(xs: tuple[Tensor, ...]) -> Tensor:
    """Return the elements of all inputs, in one dimension."""
    for x in xs:
        require(x.dtype == xs[0].dtype, "the inputs have the same type", x.dtype, xs[0].dtype)
    return torch.cat([x.reshape(-1) for x in xs])


@operator("Histogram", types={"xs": FLOATS}, inputs="1-*", gradient="undefined")
def histogram(*xs: Tensor, bin_edges: list[float] | None = None) -> Tensor:
    """The number of elements of all inputs between each two `bin_edges`, the last one excluded."""
    limits = bin_edges or []
    require(
        len(limits) >= 2, f"Number of bin edges must be greater than or equal to 2; got {limits}."
    )
    fits = all(a < b for a, b in pairwise(limits))
    require(fits, f"bin_edges must be a strictly increasing sequence of values; got {limits}.")
    values = _elements(xs).double()
    places = torch.bucketize(values, values.new_tensor(limits), right=True)
    return counts_of(places, len(limits) + 1)[1 : len(limits)]


@operator("SelfBinningHistogram", types={"xs": FLOATS}, inputs="1-*", gradient="undefined")
def self_binning_histogram(
    *xs: Tensor,
    num_bins: int = 0,
    bin_spacing: str = "linear",
    logspace_start: float = 1e-24,
    abs: bool = False,
) -> tuple[Tensor, Tensor]:
    """A histogram with `num_bins` bins from the least element of all inputs to the greatest.

    Output 0: the edges, with `bin_spacing` linear or logarithmic; output 1: counts, the last 0.
    """
    require(num_bins >= 1, f"Number of bins must be greater than or equal to 1; got {num_bins}.")
    fits = bin_spacing in ("linear", "logarithmic")
    require(fits, "bin_spacing is linear or logarithmic", bin_spacing)
    require(logspace_start > 0, "logspace_start is positive", logspace_start)
    values = _elements(xs)
    if abs:
        values = values.abs()
    n = num_bins
    if not values.numel():
        return values.new_zeros(n + 1), values.new_zeros(n + 1, dtype=torch.int64)
    start, greatest = values.min(), values.max()
    ratios = torch.arange(n + 1, dtype=values.dtype, device=values.device) / n
    if bin_spacing == "linear":
        top = start + (greatest - start) * 1.0001
        edges = start + ratios * (top - start)
    else:
        start, greatest = start.clamp(min=logspace_start), greatest.clamp(min=logspace_start)
        top = start + (greatest - start) * 1.0001
        edges = start * torch.exp((torch.log(top) - torch.log(start)) * ratios)
    # Where rounding leaves the greatest element outside, all are counted in the first bin.
    is_outside = edges[-1] <= greatest
    places = torch.bucketize(values, edges, right=True)
    places = torch.where(is_outside, 0, (places - 1).clamp(min=0))
    edges = torch.cat([edges[:-1], torch.where(is_outside, top, edges[-1]).view(1)])
    # Elements beyond the last edge, such as NaN, are not counted.
    counts = counts_of(places, n + 1)[:n]
    return edges, torch.cat([counts, counts.new_zeros(1)])


@register_operator("AccumulateHistogram", inputs="1", outputs="2", gradient="undefined")
class AccumulateHistogram(TorchOperator):
    """Counts in `num_buckets` from `lower_bound` to `upper_bound`, and below and above.

    Output 0: the counts of this run; output 1: those of all runs of the operator.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._n = self.GetSingleArgument("num_buckets", 1)
        require(self._n > 0, "The argument num_buckets must be positive.")
        self._counts: Any = None

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT).reshape(-1)
        low = self.GetSingleArgument("lower_bound", 0.0)
        high = self.GetSingleArgument("upper_bound", 1.0)
        width = x.new_tensor(high).sub(low) / self._n
        places = ((x - low) / width).long().clamp(0, self._n - 1) + 1
        places = torch.where(x < low, 0, torch.where(x >= high, self._n + 1, places))
        counts = torch.bincount(places, minlength=self._n + 2)
        self._counts = counts if self._counts is None else self._counts + counts
        self.put(0, counts)
        self.put(1, self._counts.clone())


@operator("Quantile", types={"xs": FLOATS}, inputs="1-*", gradient="undefined", effects=("values",))
def quantile(*xs: Tensor, quantile: float = -1.0, tol: float = 1e-3, abs: bool = True) -> Tensor:
    """The `quantile` of the elements of all inputs, or of their absolute values.

    Found by bisection with tolerance `tol`, with the steps of Caffe2.
    """
    require(0 <= quantile <= 1, "the quantile is in [0, 1]", quantile)
    require(tol > 0, "tol is positive", tol)
    values = _elements(xs)
    require(values.numel() > 0, "the inputs are not empty")
    return _bisected(values.abs() if abs else values, quantile, tol).reshape(1)


def _bisected(values: Tensor, quantile: float, tol: float) -> Tensor:
    part = torch.tensor(quantile, dtype=torch.float32, device="cpu")
    target = int(torch.ceil(values.numel() * part))
    low, high = values.min(), values.max()
    if target == values.numel():
        return high
    if target == 0 or int((values <= low).sum()) >= target:
        return low
    while bool((high - low).abs() > tol * (high.abs() + low.abs())):
        middle = low + (high - low) / 2
        count = int((values <= middle).sum())
        if count == target:
            return middle
        require(bool(middle not in (low, high)), "the numbers are not too close together to bisect")
        low, high = (low, middle) if count > target else (middle, high)
    return high


@operator("IndexHash", types=INTS, inplace="0>0", gradient="undefined")
def index_hash(indices: Tensor, *, seed: int = 0, modulo: int = 0, out: Out = None) -> Tensor:
    """A hash of each integer in [0, `modulo`); it depends on `seed`.

    The hash starts at seed * 0xDEADBEEF; for each byte, lowest first and signed, it is multiplied
    by 65537 and the byte is added, wrapping around as its type does.
    Follows IndexHashOp, caffe2/operators/index_hash_ops.h, PyTorch 1.8.1.
    """
    bits = 8 * indices.element_size()
    require(0 < modulo < 2 ** (bits - 1), f"modulo is at least 1, and of {bits} bits", modulo)
    start = seed * 0xDEADBEEF % 2**bits
    start -= 2**bits if start >= 2 ** (bits - 1) else 0
    hashed = indices.new_full(indices.shape, start)
    for column in indices.reshape(-1, 1).view(torch.int8).unbind(1):
        hashed = hashed * 65537 + column.view(indices.shape)
    return torch.remainder(hashed, modulo, out=out)
