# SPDX-License-Identifier: Apache-2.0
"""Detectron's parts of a tensor that another one selects: SampleAs and SpatialNarrowAs.

Caffe2 computes them on CUDA alone; here they are computed on the CPU, too.
Follows modules/detectron, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, require


def _chosen(x: Tensor, labels: Tensor) -> Tensor:
    """Return the numbers of the rows with a positive label. Raises EnforceNotMet: there is none."""
    require(x.dim() > 0 and labels.dim() > 0, "X and the labels have dimensions", x, labels)
    fits = labels.shape[0] == labels.numel() == x.shape[0]
    require(fits, "there is one label per row of X", labels, x)
    rows = (labels.view(-1) > 0).nonzero().view(-1)
    require(rows.numel() > 0, "a label is positive", labels.tolist())
    return rows


@operator(
    "SampleAs", types={"labels": INT32}, gradient="$Gradient i0 i1 g0 > 0", effects=("values",)
)
def sample_as(x: Tensor, labels: Tensor) -> Tensor:
    """(X: (N, ...), labels: (N)) -> the rows of X with a positive label.

    Raises EnforceNotMet: no label is positive.
    """
    return x.index_select(0, _chosen(x, labels))


@operator("SampleAsGradient", types={"labels": INT32}, effects=("values",))
def sample_as_gradient(x: Tensor, labels: Tensor, dy: Tensor) -> Tensor:
    """(X, labels, dY) -> dX: the rows moved back, 0 elsewhere."""
    rows = _chosen(x, labels)
    require(dy.shape == (len(rows), *x.shape[1:]), "dY has the sizes of Y", dy)
    return torch.zeros_like(x).index_copy(0, rows, dy)


_TYPES = {"a": (c10.float32, c10.int32), "b": None}


def _window(a: Tensor, b: Tensor) -> tuple[int, int]:
    """Return the height and width of B, which are not above those of A."""
    require(a.dim() == 4 and b.dim() in (3, 4), "A has 4 dimensions, B has 3 or 4", a, b)
    kept = a.dim() - 2 if b.dim() == 4 else 1
    require(a.shape[:kept] == b.shape[:kept], "A and B have the same first sizes", a, b)
    height, width = b.shape[-2:]
    require(height <= a.shape[2] and width <= a.shape[3], "B is not larger than A", a, b)
    return height, width


@operator("SpatialNarrowAs", types=_TYPES, gradient="$Gradient i0 i1 g0 > 0")
def spatial_narrow_as(a: Tensor, b: Tensor) -> Tensor:
    """(A: (N, C, H, W), B: (N, C, h, w) or (N, h, w)) -> the upper left (N, C, h, w) of A."""
    height, width = _window(a, b)
    return a[:, :, :height, :width].clone(memory_format=torch.contiguous_format)


@operator("SpatialNarrowAsGradient", types={**_TYPES, "dc": "a"})
def spatial_narrow_as_gradient(a: Tensor, b: Tensor, dc: Tensor) -> Tensor:
    """(A, B, dC) -> dA: dC, with 0 at the right and below."""
    height, width = _window(a, b)
    require(dc.shape == (*a.shape[:2], height, width), "dC has the sizes of C", dc)
    return torch.constant_pad_nd(dc, (0, a.shape[3] - width, 0, a.shape[2] - height))
