# SPDX-License-Identifier: Apache-2.0
"""RoIPool and Detectron's RoIPoolF: the maxima of regions of images."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.boxes import roi_align_kernels
from bridge.caffe2.operators.boxes.roi_align import are_of
from bridge.caffe2.operators.boxes.roi_rules import RoIRules, regions_of


@operator("RoIPool", outputs="1-2", gradient="$Gradient i0 i1 o1 g0 > 0", effects=("values",))
def roi_pool(
    x: Tensor, rois: Tensor, *, rules: RoIRules, is_test: int = 0, outputs: OutputCount = 2
) -> tuple[Tensor, Tensor]:
    """Maxima of the bins of regions: (X: (N, C, H, W), R: (n, 5)) -> (n, C, pooled_h, pooled_w).

    With `is_test` 0 a second output has the indices of the maxima. For the arguments see RoIRules.
    Follows RoIPoolOp, caffe2/operators/roi_pool_op.cc, PyTorch 1.8.1.
    """
    require(outputs == (1 if is_test else 2), "there are two outputs, with is_test one", outputs)
    return _pooled(x, rois, rules)


@operator("RoIPoolF", gradient="$Gradient i0 i1 o1 g0 > 0", effects=("values",))
def roi_pool_f(x: Tensor, rois: Tensor, *, rules: RoIRules) -> tuple[Tensor, Tensor]:
    """RoIPool of Detectron, which always has the indices of the maxima.

    Caffe2 has it for CUDA only. Follows modules/detectron/roi_pool_f_op.cu, PyTorch 1.8.1.
    """
    return _pooled(x, rois, rules)


def _pooled(x: Tensor, rois: Tensor, rules: RoIRules) -> tuple[Tensor, Tensor]:
    """Return the maxima of bins, and their indices in an image's plane."""
    require(rules.order == "NCHW", "order is NCHW", rules.order)
    fits = x.dim() == 4 and rois.dim() == 2 and rois.shape[1] == 5
    require(fits, "X has 4 dimensions and R has sizes (n, 5)", x, rois)
    n, channels, height, width = x.shape
    sizes = rois.shape[0], channels, *rules.bins
    if takes_kernels(x) and are_of(rois, n):
        made, where = x.new_empty(sizes), x.new_empty(sizes, dtype=torch.int32)
        given = n, rois.shape[0], channels, height, width, *rules.bins, rules.scale
        return roi_align_kernels.roi_pool(x, rois, made, where, *given), where
    number, regions = regions_of(rois, 4, n)
    made = x.new_zeros(sizes)
    where = torch.full(made.shape, -1, dtype=torch.int32, device=x.device)
    scaled = regions * rules.scale
    places = (scaled + 0.5).where(scaled >= 0, -(-scaled + 0.5)).trunc().int().tolist()
    for i, (image, (left, top, right, low)) in enumerate(zip(number.tolist(), places, strict=True)):
        rows = spans(top, low, rules.bins[0], height)
        columns = spans(left, right, rules.bins[1], width)
        for up, (y0, y1) in enumerate(rows):
            for across, (x0, x1) in enumerate(columns):
                if y1 <= y0 or x1 <= x0:
                    continue
                part = x[image, :, y0:y1, x0:x1].flatten(1)
                made[i, :, up, across], at = part.max(1)
                place = (at // (x1 - x0) + y0) * width + at % (x1 - x0) + x0
                where[i, :, up, across] = place.int()
    return made, where


@operator("RoIPoolFGradient", types={"places": INT32}, effects=("values",))
@operator("RoIPoolGradient", types={"places": INT32}, effects=("values",))
def roi_pool_gradient(
    x: Tensor, rois: Tensor, places: Tensor, dy: Tensor, *, rules: RoIRules
) -> Tensor:
    """(X, R, the indices of the maxima, dY) -> dX: each gradient, added to its maximum's place.

    Caffe2 has it for CUDA only. Follows caffe2/operators/roi_pool_op.cu, PyTorch 1.8.1.
    """
    require(x.dim() == 4 and dy.shape == places.shape, "dY has the sizes of the indices", dy)
    n, channels = x.shape[:2]
    number, _ = regions_of(rois, 4, n)
    planes = number.long().view(-1, 1) * channels + torch.arange(channels, device=x.device)
    where, slopes = places.flatten(2), dy.flatten(2)
    at = planes.unsqueeze(2) * x[0, 0].numel() + where.clamp_min(0)
    made = x.new_zeros(x.numel())
    made.index_add_(0, at.reshape(-1), torch.where(where >= 0, slopes, 0.0).reshape(-1))
    return made.view(x.shape)


def spans(first: int, last: int, bins: int, size: int) -> list[tuple[int, int]]:
    """Return the [start, end) of `bins` parts of pixels `first` to `last`, which may overlap."""
    length = torch.tensor(float(max(last - first + 1, 1)), dtype=torch.float32, device="cpu") / bins
    starts = torch.arange(bins, dtype=torch.float32, device="cpu") * length
    ends = torch.arange(1, bins + 1, dtype=torch.float32, device="cpu") * length
    low = (starts.floor().int() + first).clamp(0, size).tolist()
    high = (ends.ceil().int() + first).clamp(0, size).tolist()
    return list(zip(low, high, strict=True))
