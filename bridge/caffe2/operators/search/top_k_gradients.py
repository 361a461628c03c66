# SPDX-License-Identifier: Apache-2.0
"""Gradients of TopK, FlexibleTopK and LengthsTopK."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    INT32,
    INTS,
    TorchOperator,
    enforce,
    plain_axis,
)

__all__: list[str] = []


@register_operator("TopKGradient")
class TopKGradient(TorchOperator):
    """(gradients of the largest elements, their indices along `axis`, X) -> dX."""

    def RunOnDevice(self) -> None:
        gradients, places, x = self.x(0, FLOAT), self.x(1, INTS), self.x(2, FLOAT)
        enforce(x.dim() > 0, "X must have at least one dimension.")
        axis = plain_axis(self.GetSingleArgument("axis", -1), x.dim())
        sizes = [*x.shape[:axis], gradients.size(axis), *x.shape[axis + 1 :]]
        enforce(
            list(gradients.shape) == list(places.shape) == sizes,
            f"Gradients {list(gradients.shape)} and indices {list(places.shape)} must have the "
            f"sizes {sizes}.",
        )
        enforce(bool((places < x.size(axis)).all()), "An index is out of range.")
        # Where there were fewer than k elements, the index is -1; its gradient is dropped.
        found = places >= 0
        result = torch.zeros_like(x)
        result.scatter_add_(axis, places.clamp(min=0).long(), torch.where(found, gradients, 0.0))
        self.put(0, result)


@register_operator("FlexibleTopKGradient")
class FlexibleTopKGradient(TorchOperator):
    """(X, k of each row, gradients of the largest elements, their indices) -> dX."""

    def RunOnDevice(self) -> None:
        x, ks = self.x(0, FLOAT), self.x(1, INTS).reshape(-1)
        gradients, places = self.x(2, FLOAT), self.x(3, INTS)
        enforce(x.dim() > 0, "X must have at least one dimension.")
        rows = torch.zeros_like(x).view(-1, x.size(-1))
        enforce(
            len(ks) == len(rows) and bool((ks >= 0).all()),
            f"There must be {len(rows)} numbers k, one per row, that are not negative.",
        )
        count = int(ks.sum())
        enforce(
            gradients.numel() == places.numel() == count,
            f"There must be {count} gradients and indices.",
        )
        enforce(bool(((places >= 0) & (places < x.size(-1))).all()), "An index is out of range.")
        numbers = torch.repeat_interleave(torch.arange(len(rows)), ks.long())
        rows[numbers, places.reshape(-1).long()] = gradients.reshape(-1)
        self.put(0, rows.view(x.shape))


@register_operator("LengthsTopKGradient")
class LengthsTopKGradient(TorchOperator):
    """(lengths, indices within the segments (n, k), gradients (n, k)) -> dX."""

    def RunOnDevice(self) -> None:
        lengths, places, gradients = self.x(0, INT32), self.x(1, INT32), self.x(2, FLOAT)
        k = self.GetSingleArgument("k", -1)
        enforce(k >= 1, "The argument k must be at least 1.")
        n = lengths.numel()
        enforce(
            places.numel() == gradients.numel() == n * k,
            f"There must be {n} times {k} gradients and indices.",
        )
        ids = segment_ids(lengths)
        starts = (lengths.cumsum(0) - lengths).view(-1, 1)
        taken = torch.arange(k) < lengths.view(-1, 1)
        places, gradients = places.view(n, k), gradients.view(n, k)
        enforce(
            bool(((places >= 0) & (places < lengths.view(-1, 1)))[taken].all()),
            "An index is out of range.",
        )
        result = gradients.new_zeros(len(ids))
        result[(places + starts)[taken].long()] = gradients[taken]
        self.put(0, result)
