# SPDX-License-Identifier: Apache-2.0
"""Losses of probabilities and logits against labels, and their gradients.

Follows caffe2/operators/cross_entropy_op.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT32, gathered, require, require_all
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.base.gradients import with_gradient
from bridge.caffe2.operators.layers.matrix_products import as_matrix
from bridge.caffe2.operators.training import loss_kernels

SMALLEST = 1e-20  # lower bound of probabilities before their logarithm


def _rows(x: Tensor) -> Tensor:
    return as_matrix(x, 1) if x.dim() else x.view(1, 1)


def _labelled(x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """Return X as a matrix, and the labels of its rows as indices (N, 1)."""
    rows = _rows(x)
    _require_labels(rows, label)
    return rows, label.view(-1, 1).long()


def _require_labels(rows: Tensor, label: Tensor) -> None:
    require(label.dim() in (1, 2), "the labels have one dimension", label)
    require(label.numel() == rows.shape[0], "there is one label per row", label, rows)


def _bounded(p: Tensor) -> Tensor:
    """Return probabilities, at least 1e-20; their gradient is that of Caffe2, also below."""
    bounded = p.clamp(min=SMALLEST)
    return with_gradient(bounded.detach(), p) if p.requires_grad else bounded


@operator("LabelCrossEntropy", types={"label": INT32}, gradient="$Gradient i0 i1 g0 > 0")
def label_cross_entropy(x: Tensor, label: Tensor, *, out: Out = None) -> Tensor:
    """(X: (N, D), label: (N) of int32) -> -log(max(X at the label, 1e-20)): (N).

    Raises EnforceNotMet: a label is out of range.
    """
    rows = _rows(x)
    if takes_kernels(rows) and takes_kernels(label, dtype=torch.int32):
        _require_labels(rows, label)
        n, width = rows.shape
        made = x.new_empty(n) if out is None else out
        return run_kernel(loss_kernels.label_cross_entropy, made, rows, label, n, width, SMALLEST)
    rows, at = _labelled(x, label)
    return torch.neg(_bounded(gathered("labels", rows, at).view(-1)).log(), out=out)


@operator("LabelCrossEntropyGradient", types={"label": INT32})
def label_cross_entropy_gradient(
    x: Tensor, label: Tensor, dy: Tensor, *, out: Out = None
) -> Tensor:
    """(X, label, dY: (N)) -> dX."""
    if takes_kernels(x, dy) and takes_kernels(label, dtype=torch.int32):
        n, width = _rows(x).shape
        _require_labels(_rows(x), label)
        require(dy.shape == (n,), "there is one gradient per row", dy)
        made = torch.empty_like(x) if out is None else out
        kernel = loss_kernels.label_cross_entropy_gradient
        return run_kernel(kernel, made, x, label, dy, n, width, SMALLEST)
    rows, at = _labelled(x, label)
    require(dy.dim() == 1 and dy.numel() == at.numel(), "there is one gradient per row", dy)
    dy = dy.view(-1, 1)
    slopes = -dy / gathered("labels", rows, at).clamp(min=SMALLEST)
    return torch.zeros_like(rows).scatter_add(1, at, slopes).view(x.shape)


@operator("CrossEntropy", gradient="$Gradient i0 i1 g0 > 0")
def cross_entropy(x: Tensor, label: Tensor, *, out: Out = None) -> Tensor:
    """(X: (N, D), label: (N, D)) -> -sum(label * log(max(X, 1e-20))) of each row (N)."""
    require(x.shape == label.shape, "X and the labels have the same shape", x, label)
    rows = _rows(x)
    require(x.dim() > 1 or label.numel() == 1, "one dimension is one number", label)
    if takes_few(rows, label):
        made = x.new_empty(rows.shape[:1]) if out is None else out
        return run_kernel(loss_kernels.cross_entropy, made, rows, label, *rows.shape, SMALLEST)
    require_all((label >= 0) & (label <= 1), "labels are probabilities, from 0 to 1", label)
    return torch.neg((_bounded(rows).log() * label.view(rows.shape)).sum(1), out=out)


@operator("CrossEntropyGradient")
def cross_entropy_gradient(x: Tensor, label: Tensor, dy: Tensor) -> Tensor:
    """(X, label, dY: (N)) -> dX."""
    require(x.shape == label.shape, "X and the labels have the same shape", x, label)
    rows = _rows(x)
    require(dy.dim() == 1 and dy.shape[0] == rows.shape[0], "there is a gradient per row", dy, x)
    slope = -dy.view(-1, 1) * label.view(rows.shape)
    return (slope / rows.clamp(min=SMALLEST)).view(x.shape)


@operator("MakeTwoClass", gradient="$Gradient g0 > 0")
def make_two_class(x: Tensor, *, out: Out = None) -> Tensor:
    """X: (N...) -> (N..., 2), 1 - X and X."""
    return torch.stack((1 - x, x), -1, out=out)


@operator("MakeTwoClassGradient")
def make_two_class_gradient(dy: Tensor, *, out: Out = None) -> Tensor:
    """dY: (N..., 2) -> dX: (N...)."""
    require(dy.dim() >= 1 and dy.shape[-1] == 2, "the last dimension of dY has size 2", dy)
    return torch.sub(dy[..., 1], dy[..., 0], out=out)


class LogitRules:
    """The arguments `log_D_trick` and `unjoined_lr_loss`, other losses, which exclude each other.

    Neither is an argument of weighted losses.
    """

    takes = "bool log_D_trick, bool unjoined_lr_loss"

    def __init__(self, arguments: Arguments) -> None:
        weighted = arguments.type.startswith("Weighted")
        self.trick = not weighted and bool(arguments.single("log_D_trick", False))
        self.unjoined = not weighted and bool(arguments.single("unjoined_lr_loss", False))
        fits = not (self.trick and self.unjoined)
        require(fits, "log_D_trick and unjoined_lr_loss are not both set")
        self.plain = not weighted and not self.trick and not self.unjoined


def _matrices(logits: Tensor, *others: Tensor | None) -> list[Tensor]:
    """Return logits, targets and, if there are any, weights as matrices (N, D)."""
    inputs = [logits, *(one for one in others if one is not None)]
    for other in inputs[1:]:
        require(other.shape == logits.shape, "the inputs have the same shape", other, logits)
    inner = logits.shape[-1] if logits.dim() else 1
    return [one.reshape(-1, inner) for one in inputs]


@operator("SigmoidCrossEntropyWithLogits", inputs="2", gradient="$Gradient g0 i0 i1 > 0")
@operator("WeightedSigmoidCrossEntropyWithLogits", inputs="3", gradient="$Gradient g0 i0 i1 i2 > 0")
def sigmoid_cross_entropy_with_logits(
    logits: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    *,
    rules: LogitRules,
    out: Out = None,
) -> Tensor:
    """(logits: (N..., D), targets, for Weighted weights) -> the mean loss of each row (N...).

    The loss is the cross entropy of the sigmoid of the logits and the targets.
    """
    x, t, *given = _matrices(logits, targets, weights)
    # In the first run, too, which has no buffer: the last bits are not those of torch's functions.
    if rules.plain and takes_few(x, t if out is None else out, t):
        losses = x.new_empty(logits.shape[:-1]) if out is None else out
        return run_kernel(loss_kernels.sigmoid_cross_entropy, losses, x, t, *x.shape)
    if rules.trick or rules.unjoined:
        positive = (x >= 0).to(x.dtype)
        tail = torch.log(torch.exp(x - 2 * x * positive) + 1)
        if rules.trick:
            losses = (1 - 2 * t) * (x - x * positive - tail)
        else:
            losses = (1 - t) * (x * positive + tail) - x * t
    else:
        losses = torch.binary_cross_entropy_with_logits(x, t, None, None, 0)  # none are summed
        losses = losses.mul_(given[0]) if given else losses
    if out is None:
        return losses.mean(1).view(logits.shape[:-1])
    torch.mean(losses, 1, out=out.view(-1))
    return out


@operator("SigmoidCrossEntropyWithLogitsGradient", inputs="3")
@operator("WeightedSigmoidCrossEntropyWithLogitsGradient", inputs="4")
def sigmoid_cross_entropy_with_logits_gradient(
    dy: Tensor,
    logits: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    *,
    rules: LogitRules,
    out: Out = None,
) -> Tensor:
    """(dY: (N...), logits, targets, for Weighted weights) -> the gradient of the logits."""
    x, t, *given = _matrices(logits, targets, weights)
    require(dy.numel() == x.shape[0], "there is one gradient per row", dy, logits)
    if rules.plain and takes_few(x, x if out is None else out, dy, t):
        slopes = torch.empty_like(logits) if out is None else out
        return run_kernel(loss_kernels.sigmoid_cross_entropy_gradient, slopes, dy, x, t, *x.shape)
    if rules.trick:
        slopes = (2 * t - 1) * torch.sigmoid(-x)
    elif rules.unjoined:
        slopes = t - (1 - t) * torch.sigmoid(x)
    else:
        slopes = t - torch.sigmoid(x)
    for weight in given:
        slopes = slopes * weight
    return (slopes * (-dy.reshape(-1, 1) / x.shape[1])).view(logits.shape)
