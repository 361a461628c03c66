# SPDX-License-Identifier: Apache-2.0
"""Histograms and quantiles."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOAT, FLOATS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _All(TorchOperator):
    """An operator on the elements of all inputs, which have the same type."""

    def elements(self) -> torch.Tensor:
        """Return the elements of all inputs, in one dimension."""
        dtype = self.Input(0).dtype()
        parts = [self.x(i, (dtype,) if i else FLOATS).reshape(-1) for i in range(self.InputSize())]
        return torch.cat(parts)


@register_operator("Histogram")
class Histogram(_All):
    """The number of elements of all inputs between each two `bin_edges`, the last one excluded."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._edges = self.GetRepeatedArgument("bin_edges")
        enforce(len(self._edges) >= 2, "There must be at least two bin_edges.")
        enforce(
            all(a < b for a, b in zip(self._edges, self._edges[1:], strict=False)),
            "The bin_edges must be strictly increasing.",
        )

    def RunOnDevice(self) -> None:
        values = self.elements().double()
        edges = torch.tensor(self._edges, dtype=torch.float32).double()
        places = torch.bucketize(values, edges, right=True)
        counts = torch.bincount(places, minlength=len(edges) + 1)
        self.put(0, counts[1 : len(edges)].clone())


@register_operator("SelfBinningHistogram")
class SelfBinningHistogram(_All):
    """A histogram with `num_bins` bins from the least element of all inputs to the greatest.

    Output 0: the edges, with `bin_spacing` linear or logarithmic; output 1: counts, the last 0.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._n = self.GetSingleArgument("num_bins", 0)
        self._spacing = self.GetSingleArgument("bin_spacing", "linear")
        self._start = self.GetSingleArgument("logspace_start", 1e-24)
        enforce(self._n >= 1, "Number of bins must be greater than or equal to 1.")
        enforce(
            self._spacing in ("linear", "logarithmic"),
            f"bin_spacing must be linear or logarithmic, not {self._spacing!r}.",
        )
        enforce(self._start > 0, "The argument logspace_start must be positive.")

    def RunOnDevice(self) -> None:
        values = self.elements()
        if self.GetSingleArgument("abs", False):
            values = values.abs()
        counts = torch.zeros(self._n + 1, dtype=torch.int64)
        if not len(values):
            self.put(0, values.new_zeros(self._n + 1))
            self.put(1, counts)
            return
        low, high = values.min(), values.max()
        ratios = torch.arange(self._n + 1, dtype=values.dtype) / self._n
        start, greatest = low, high
        if self._spacing == "linear":
            top = low + (high - low) * torch.tensor(1.0001, dtype=values.dtype)
            edges = low + ratios * (top - low)
        else:
            start, greatest = low.clamp(min=self._start), high.clamp(min=self._start)
            top = start + (greatest - start) * torch.tensor(1.0001, dtype=values.dtype)
            edges = start * torch.exp((torch.log(top) - torch.log(start)) * ratios)
        if bool(edges[-1] <= greatest):
            edges[-1] = top
            counts[0] = len(values)
        else:
            places = torch.bucketize(values, edges, right=True)
            found = torch.bincount(places, minlength=self._n + 2)
            counts[: self._n] = found[1 : self._n + 1]
            counts[0] += found[0]
        self.put(0, edges)
        self.put(1, counts)


@register_operator("AccumulateHistogram")
class AccumulateHistogram(TorchOperator):
    """Counts in `num_buckets` from `lower_bound` to `upper_bound`, and below and above.

    Output 0: the counts of this run; output 1: those of all runs of the operator.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._n = self.GetSingleArgument("num_buckets", 1)
        enforce(self._n > 0, "The argument num_buckets must be positive.")
        self._counts: Any = None

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT).reshape(-1)
        low = self.GetSingleArgument("lower_bound", 0.0)
        high = self.GetSingleArgument("upper_bound", 1.0)
        width = torch.tensor(high, dtype=torch.float32).sub(low) / self._n
        places = ((x - low) / width).long().clamp(0, self._n - 1) + 1
        places = torch.where(x < low, 0, torch.where(x >= high, self._n + 1, places))
        counts = torch.bincount(places, minlength=self._n + 2)
        self._counts = counts if self._counts is None else self._counts + counts
        self.put(0, counts)
        self.put(1, self._counts.clone())


@register_operator("Quantile")
class Quantile(_All):
    """The `quantile` of the elements of all inputs, or of their absolute values.

    Found by bisection with tolerance `tol`, with the steps of Caffe2.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._quantile = self.GetSingleArgument("quantile", -1.0)
        self._tolerance = self.GetSingleArgument("tol", 1e-3)
        enforce(0 <= self._quantile <= 1, f"The quantile must be in [0, 1], not {self._quantile}.")
        enforce(self._tolerance > 0, "The argument tol must be positive.")

    def RunOnDevice(self) -> None:
        values = self.elements()
        enforce(len(values) > 0, "The inputs must not be empty.")
        if self.GetSingleArgument("abs", True):
            values = values.abs()
        self.put(0, self._found(values).reshape(1).clone())

    def _found(self, values: torch.Tensor) -> torch.Tensor:
        quantile = torch.tensor(self._quantile, dtype=torch.float32)
        target = int(torch.ceil(len(values) * quantile))
        low, high = values.min(), values.max()
        if target == len(values):
            return high
        if target == 0 or int((values <= low).sum()) >= target:
            return low
        while bool((high - low).abs() > self._tolerance * (high.abs() + low.abs())):
            middle = low + (high - low) / 2
            count = int((values <= middle).sum())
            if count == target:
                return middle
            enforce(
                bool(middle not in (low, high)), "The numbers are too close together to bisect."
            )
            low, high = (low, middle) if count > target else (middle, high)
        return high
