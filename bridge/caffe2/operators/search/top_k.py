# SPDX-License-Identifier: Apache-2.0
"""TopK and FlexibleTopK: the largest elements."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import (
    FLOAT,
    INT64,
    TorchOperator,
    enforce,
    plain_axis,
)

__all__: list[str] = []


@register_operator("TopK")
class TopK(TorchOperator):
    """The `k` largest elements along `axis` (-1), their indices along it, and their flat indices.

    `k` is an argument or input 1. Of equal elements the first ones are selected; missing elements
    have the value 0 and the index -1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOAT)
        k = self.GetSingleArgument("k", -1)
        if k == -1 and self.InputSize() == 2:
            enforce(self.Input(1).numel() > 0, "Input 1 must have one element.")
            k = self.integers(1, INT64)[0]
        enforce(k >= 1, f"k must be at least 1, not {k}.")
        axis = plain_axis(self.GetSingleArgument("axis", -1), x.dim())
        n, inner = x.size(axis), x.shape[axis + 1 :].numel()
        rows = x.reshape(x.shape[:axis].numel(), n, inner)
        found = min(k, n)
        order = torch.sort(rows, dim=1, descending=True, stable=True)
        sizes = [*x.shape[:axis], k, *x.shape[axis + 1 :]]
        values = x.new_zeros(rows.size(0), k, rows.size(2))
        places = torch.full((rows.size(0), k, rows.size(2)), -1)
        values[:, :found] = order.values[:, :found]
        places[:, :found] = order.indices[:, :found]
        if self.OutputSize() > 2:
            starts = torch.arange(rows.size(0)).view(-1, 1, 1) * n * inner
            flat = places * inner + starts + torch.arange(rows.size(2))
            self.put(2, torch.where(places < 0, -1, flat).reshape(-1))
        self.put(0, values.reshape(sizes))
        self.put(1, places.reshape(sizes))


@register_operator("FlexibleTopK")
class FlexibleTopK(TorchOperator):
    """The k largest elements of each row, k per row being input 1, concatenated."""

    def RunOnDevice(self) -> None:
        x, ks = self.x(0, FLOAT), self.x(1, INT64).reshape(-1)
        enforce(x.dim() > 0, "Input 0 must have at least one dimension.")
        rows = x.reshape(-1, x.size(-1))
        enforce(len(ks) == len(rows), f"There are {len(ks)} numbers k, but {len(rows)} rows.")
        enforce(
            bool(((ks >= 1) & (ks <= rows.size(1))).all()),
            f"k must be 1 to {rows.size(1)} for each row.",
        )
        order = torch.sort(rows, dim=1, descending=True, stable=True)
        taken = torch.arange(rows.size(1)) < ks[:, None]
        self.put(0, order.values[taken])
        self.put(1, order.indices[taken])
