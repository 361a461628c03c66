# SPDX-License-Identifier: Apache-2.0
"""Softmax with cross entropy in one operator, of rows and of images.

Follows softmax_with_loss_op.cc and spatial_softmax_with_loss_op.cc in caffe2/operators, PyTorch
1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.channels import ChannelsFirst
from bridge.caffe2.operators.base.checks import (
    INT32,
    axis_from_front,
    gathered,
    require,
    require_all,
    require_range,
)
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.base.gradients import with_gradient
from bridge.caffe2.operators.layers.matrix_products import as_matrix
from bridge.caffe2.operators.layers.row_operators import SHORT
from bridge.caffe2.operators.training import loss_kernels

_LABELS = (c10.int32, c10.float32)
LEAST_LOG = math.log(1e-20)  # of the softmax, in losses


def _share(total: Tensor, count: Tensor, scale: float) -> Tensor:
    """Return scale / count, or 0 if the `total` of the weights is 0."""
    return torch.where(total == 0, total.new_zeros(()), scale / count)


def _factor(
    weight: Tensor | None, n: int, scale: float, average_by_batch_size: int
) -> Tensor | float:
    """Return the factor of the sum of the losses: a number, or a tensor if there are weights."""
    if weight is None:
        return scale / n if n else 0.0
    total = weight.sum()
    count = torch.full_like(total, max(n, 1)) if average_by_batch_size else total
    return _share(total, count, scale)


def _bounded(logs: Tensor) -> Tensor:
    """Return logarithms, at least that of 1e-20; their gradient is that of Caffe2, also below."""
    bounded = logs.clamp(min=LEAST_LOG)
    if not logs.requires_grad:
        return bounded
    return with_gradient(bounded.detach(), logs)


def _probabilities(label: Tensor, rows: Tensor) -> Tensor:
    """Return the labels as a matrix. Raises EnforceNotMet: they are not probabilities."""
    require(label.dtype == rows.dtype, "the labels are float32 with label_prob", label)
    require(label.numel() == rows.numel(), "the labels have the shape of X", label, rows)
    target = label.view(rows.shape)
    fine = (target >= 0).all(1) & ((target.sum(1) - 1).abs() < 1e-5)
    require_all(fine, "the labels of a row are probabilities that add up to 1")
    return target


def _require_labels(label: Tensor, rows: Tensor) -> None:
    require(label.dtype == torch.int32, "the labels are int32 without label_prob", label)
    require(label.numel() == rows.shape[0], "there is one label per row", label, rows)


def _take_kernels(label: Tensor, x: Tensor, *others: Tensor | None) -> bool:
    """Return whether kernels compute the loss or its gradient."""
    floats = [one for one in others if one is not None]
    return takes_kernels(x, *floats) and takes_kernels(label, dtype=torch.int32)


def _classes(label: Tensor, rows: Tensor) -> Tensor:
    """Return the labels as indices (N, 1), which are not checked."""
    _require_labels(label, rows)
    return label.view(-1, 1).long()


def _row_weights(weight: Tensor | None, rows: Tensor) -> Tensor | None:
    """Return the weights as a column (N, 1)."""
    if weight is None:
        return None
    require(weight.numel() == rows.shape[0], "there is one weight per row", weight, rows)
    return weight.view(-1, 1)


@operator(
    "SoftmaxWithLoss",
    types={"label": _LABELS},
    outputs="2-3",
    gradient="$Gradient i0 i1 i2? o0 g1 > 0",
)
def softmax_with_loss(
    x: Tensor,
    label: Tensor,
    weight: Tensor | None = None,
    *,
    axis: int = 1,
    scale: float = 1.0,
    label_prob: int = 0,
    average_by_batch_size: int = 0,
    order: ChannelsFirst,
    out: Out = None,
) -> tuple[Tensor, Tensor, None]:
    """(X: (N..., D...), labels, optionally weights: (N)) -> softmax of X, mean loss ().

    Labels are int32 (N), or with `label_prob` probabilities (N, D) of each class. `scale`: that of
    the loss; `average_by_batch_size`: divide by N instead of the sum of the weights.
    Raises EnforceNotMet: a label is out of range, or probabilities do not add up to 1.
    """
    require(scale >= 0, "scale is not negative", scale)
    rows = as_matrix(x, axis_from_front(axis, x.dim()))
    n = rows.shape[0]
    column = _row_weights(weight, rows)
    if not label_prob and _take_kernels(label, x, weight):
        _require_labels(label, rows)
        p, loss = (torch.empty_like(x), x.new_empty(())) if out is None else out[:2]
        sizes = (*rows.shape, scale, bool(average_by_batch_size))
        if rows.shape[1] < SHORT:
            given = (loss, p, x, label, weight, *sizes)
            return p, run_kernel(loss_kernels.softmax_and_loss, *given), None
        run_kernel(loss_kernels.check_labels, label, *rows.shape)  # before P is written
        odds = p.view(rows.shape)
        torch._log_softmax(rows, 1, False, out=odds)
        loss = run_kernel(loss_kernels.softmax_loss, loss, odds, label, weight, *sizes)
        torch.exp(odds, out=odds)
        return p, loss, None
    logs = torch.log_softmax(rows, 1)
    if label_prob:
        target = _probabilities(label, rows)
        terms = torch.where(target > 0, target * _bounded(logs), logs.new_zeros(()))
    else:
        terms = gathered("labels", logs, _classes(label, rows))
    if column is not None:
        terms = terms * column
    loss = terms.sum() * -_factor(weight, n, scale, average_by_batch_size)
    # Caffe2 has no gradient of the softmax here.
    p = torch.exp(logs.detach() if logs.requires_grad else logs)
    return p.view(x.shape), loss, None


@operator(
    "SoftmaxWithLossGradient",
    types={"x": None, "label": _LABELS},
    inputs="0-*",
    defaults=softmax_with_loss,
)
def softmax_with_loss_gradient(
    x: Tensor,
    label: Tensor,
    weight: Tensor,
    p: Tensor,
    dloss: Tensor | None = None,
    *,
    axis: int,
    scale: float,
    label_prob: int,
    average_by_batch_size: int,
    order: ChannelsFirst,
    out: Out = None,
) -> Tensor:
    """(X, labels, optionally weights, P, dloss: ()) -> dX; see SoftmaxWithLoss."""
    require(scale >= 0, "scale is not negative", scale)
    weights = weight if dloss is not None else None
    p, dloss = (p, dloss) if dloss is not None else (weight, p)
    rows = as_matrix(p, axis_from_front(axis, p.dim()))
    require(dloss.numel() == 1, "the gradient of the loss has one element", dloss)
    column = _row_weights(weights, rows)
    if not label_prob and _take_kernels(label, p, dloss, weights):
        _require_labels(label, rows)
        made = torch.empty_like(p) if out is None else out
        how = (scale, bool(average_by_batch_size))
        return run_kernel(
            loss_kernels.softmax_loss_gradient, made, p, label, weights, dloss, *rows.shape, *how
        )
    share = dloss.view(()) * _factor(weights, rows.shape[0], scale, average_by_batch_size)
    if label_prob:
        apart = rows - _probabilities(label, rows)
    else:
        at = _classes(label, rows)
        gathered("labels", rows, at)
        apart = rows.scatter_add(1, at, rows.new_full((), -1.0).expand(at.shape))
    factor = share if column is None else column * share
    if out is None:
        return (apart * factor).view(p.shape)
    torch.mul(apart, factor, out=out.view(rows.shape))
    return out


def _pixels(x: Tensor, label: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the labels as indices (N, 1, H, W), and the weights; 0 for label -1."""
    require(
        x.dim() == 4 and label.dim() == 3, "X has sizes (N, D, H, W) and the labels have (N, H, W)"
    )
    require(label.shape == (x.shape[0], *x.shape[2:]), "there is one label per pixel", label, x)
    require_range("labels", label, x.shape[1], start=-1)
    kept = (label != -1).to(x.dtype)
    if weight is not None:
        require(weight.numel() == label.numel(), "there is one weight per pixel", weight, label)
        kept = weight.view(label.shape) * kept
    return label.unsqueeze(1).long().clamp(min=0), kept.unsqueeze(1)


@operator(
    "SpatialSoftmaxWithLoss", types={"label": INT32}, gradient="$Gradient i0 i1 i2? o0 g1 > 0"
)
def spatial_softmax_with_loss(
    x: Tensor, label: Tensor, weight: Tensor | None = None, *, scale: float = 1.0
) -> tuple[Tensor, Tensor]:
    """(X: (N, D, H, W), labels: (N, H, W), optionally weights) -> softmax, mean loss ().

    The softmax is over D. Labels are int32; pixels with label -1 are ignored.
    """
    at, weights = _pixels(x, label, weight)
    logs = torch.log_softmax(x, 1)
    total = weights.sum()
    loss = (_bounded(logs.gather(1, at)) * weights).sum() * -1.0
    p = torch.exp(logs.detach() if logs.requires_grad else logs)
    loss = loss * _share(total, total, 1.0)
    if loss.requires_grad:
        # Only the gradient is scaled in Caffe2.
        loss = with_gradient(loss.detach(), loss * scale)
    return p, loss


@operator("SpatialSoftmaxWithLossGradient", types={"x": None, "label": INT32}, inputs="0-*")
def spatial_softmax_with_loss_gradient(
    x: Tensor,
    label: Tensor,
    weight: Tensor,
    p: Tensor,
    dloss: Tensor | None = None,
    *,
    scale: float = 1.0,
    out: Out = None,
) -> Tensor:
    """(X, labels, optionally weights, P, dloss: ()) -> dX; `scale`: that of the gradient."""
    weighted = weight if dloss is not None else None
    p, dloss = (p, dloss) if dloss is not None else (weight, p)
    at, weights = _pixels(p, label, weighted)
    total = weights.sum()
    apart = p.scatter_add(1, at, p.new_full((), -1.0).expand(at.shape)) * weights
    # Without weights of pixels Caffe2 leaves out the gradient of the loss, too.
    share = torch.where(total == 0, total.new_ones(()), dloss.view(()) * scale / total)
    return torch.mul(apart, share, out=out)
