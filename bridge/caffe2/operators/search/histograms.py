# SPDX-License-Identifier: Apache-2.0
"""Histograms and quantiles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, FLOATS, require
from bridge.caffe2.operators.base.rows_and_segments import counts_of
from bridge.caffe2.operators.base.torch_operator import TorchOperator


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
