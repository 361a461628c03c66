# SPDX-License-Identifier: Apache-2.0
"""Measures of predictions: AveragedLoss, Accuracy, MultiClassAccuracy, Perplexity."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT32, gathered, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.layers import distance_kernels
from bridge.caffe2.operators.training import loss_kernels


@operator("AveragedLoss", gradient="AveragedLossGradient i0 g0 > 0")
def averaged_loss(x: Tensor, *, out: Out = None) -> Tensor:
    """X -> the mean of all elements, 0-d; 0 if there are none.

    Follows AveragedLoss, caffe2/operators/loss_op.h, PyTorch 1.8.1.
    """
    n = x.numel()
    if takes_few(x) and n:
        return run_kernel(distance_kernels.mean, x.new_empty(()) if out is None else out, x, n)
    return x.mean() if n else x.new_zeros(())


@operator("AveragedLossGradient")
def averaged_loss_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """(X, dY: ()) -> dX."""
    require(dy.numel() == 1, "the gradient has one element", dy)
    n = x.numel()
    if takes_few(x, dy) and n:
        return run_kernel(
            distance_kernels.spread, x.new_empty(x.shape) if out is None else out, dy, n
        )
    return torch.div(dy.view(()).expand(x.shape), max(n, 1), out=out)


def _classified(x: Tensor, label: Tensor) -> None:
    """Check predictions (N, D) and int32 labels (N) in [0, D)."""
    require(
        x.dim() == 2 and label.dim() == 1, "X has two dimensions and the labels have one", x, label
    )
    require(label.shape[0] == x.shape[0], "there is one label per row", label, x)


@operator("Accuracy", types={"label": INT32}, gradient="undefined")
def accuracy(x: Tensor, label: Tensor, *, top_k: int = 1, out: Out = None) -> Tensor:
    """(predictions: (N, D), labels: (N) of int32) -> the fraction of labels in the top `k`.

    Of equal predictions the earlier ranks first.
    Follows AccuracyOp, caffe2/operators/accuracy_op.cc, PyTorch 1.8.1.
    """
    _classified(x, label)
    if takes_kernels(x) and takes_kernels(label, dtype=torch.int32):
        return run_kernel(
            loss_kernels.accuracy,
            x.new_empty(()) if out is None else out,
            x,
            label,
            *x.shape,
            top_k,
        )
    index = label.view(-1, 1).long()
    own = gathered("labels", x, index)
    places = torch.arange(x.shape[1], device=x.device)
    before = (x > own) | ((x == own) & (places < index))
    right = (before.sum(1) < top_k).sum()
    return right.to(x.dtype) / x.shape[0]


@operator("MultiClassAccuracy", types={"label": INT32}, gradient="undefined")
def multi_class_accuracy(x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """(predictions: (N, D), labels: (N) of int32) -> accuracy and count per label (D).

    Follows MultiClassAccuracyOp, caffe2/operators/multi_class_accuracy_op.cc, PyTorch 1.8.1.
    """
    _classified(x, label)
    index = label.long()
    gathered("labels", x, index.view(-1, 1))
    amounts = torch.zeros(x.shape[1], dtype=torch.int32, device=x.device)
    right = (x.argmax(1) == index).to(torch.int32)
    found = amounts.index_add(0, index, right)
    amounts = amounts.index_add(0, index, torch.ones_like(right))
    return found.to(x.dtype) / amounts.clamp(min=1), amounts


@operator("Perplexity", gradient="undefined")
def perplexity(x: Tensor) -> Tensor:
    """X: (N) of probabilities -> the product of X^(-1 / N), 0-d."""
    require(x.dim() == 1, "X has one dimension", x)
    return x.pow(-1 / max(x.numel(), 1)).prod()
