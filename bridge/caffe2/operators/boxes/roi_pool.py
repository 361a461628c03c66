# SPDX-License-Identifier: Apache-2.0
"""RoIPool: the maxima of regions of images."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.boxes.roi_operator import RoIOperator

__all__ = ["RoIPool"]


@register_operator("RoIPool")
class RoIPool(RoIOperator):
    """Maxima of the bins of regions: (X: (N, C, H, W), R: (n, 5)) -> (n, C, pooled_h, pooled_w).

    With `is_test` 0 a second output has the indices of the maxima.
    Follows RoIPoolOp, caffe2/operators/roi_pool_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        self.enforce(self.order == "NCHW", "order is NCHW", self.order)
        is_test = bool(self.GetSingleArgument("is_test", 0))
        self.enforce(is_test or self.OutputSize() == 2, "in training there are two outputs")
        x, r = self.x(0), self.x(1)
        self.enforce(
            x.dim() == 4 and r.dim() == 2 and r.shape[1] == 5,
            "X has 4 dimensions and R has sizes (n, 5)",
            x,
            r,
        )
        n, channels, height, width = x.shape
        number, regions = self.regions(1, n)
        made = x.new_zeros(len(r), channels, *self.bins)
        where = torch.full(made.shape, -1, dtype=torch.int32)
        scaled = regions * self.scale
        places = (scaled + 0.5).where(scaled >= 0, -(-scaled + 0.5)).trunc().int().tolist()
        for i, (image, (left, top, right, low)) in enumerate(
            zip(number.tolist(), places, strict=True)
        ):
            rows = spans(top, low, self.bins[0], height)
            columns = spans(left, right, self.bins[1], width)
            for up, (y0, y1) in enumerate(rows):
                for across, (x0, x1) in enumerate(columns):
                    if y1 <= y0 or x1 <= x0:
                        continue
                    part = x[image, :, y0:y1, x0:x1].flatten(1)
                    made[i, :, up, across], at = part.max(1)
                    place = (at // (x1 - x0) + y0) * width + at % (x1 - x0) + x0
                    where[i, :, up, across] = place.int()
        self.put(0, made)
        if not is_test:
            self.put(1, where)


def spans(first: int, last: int, bins: int, size: int) -> list[tuple[int, int]]:
    """Return the [start, end) of `bins` parts of pixels `first` to `last`, which may overlap."""
    length = torch.tensor(float(max(last - first + 1, 1)), dtype=torch.float32) / bins
    starts = torch.arange(bins, dtype=torch.float32) * length
    ends = torch.arange(1, bins + 1, dtype=torch.float32) * length
    low = (starts.floor().int() + first).clamp(0, size).tolist()
    high = (ends.ceil().int() + first).clamp(0, size).tolist()
    return list(zip(low, high, strict=True))
