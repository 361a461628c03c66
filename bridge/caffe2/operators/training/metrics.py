# SPDX-License-Identifier: Apache-2.0
"""Measures of predictions: AveragedLoss, Accuracy, MultiClassAccuracy, Perplexity.

Follows loss_op.h, accuracy_op.cc, multi_class_accuracy_op.cc and apmeter_op.cc in caffe2/operators,
PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, INT32, gathered, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.layers import layer_kernels
from bridge.caffe2.operators.training import loss_kernels


@operator("AveragedLoss", gradient="$Gradient i0 g0 > 0")
def averaged_loss(x: Tensor, *, out: Out = None) -> Tensor:
    """X -> the mean of all elements, 0-d; 0 if there are none."""
    n = x.numel()
    if takes_few(x) and n:
        return run_kernel(layer_kernels.mean, x.new_empty(()) if out is None else out, x, n)
    return x.mean() if n else x.new_zeros(())


@operator("AveragedLossGradient")
def averaged_loss_gradient(x: Tensor, dy: Tensor, *, out: Out = None) -> Tensor:
    """(X, dY: ()) -> dX."""
    require(dy.numel() == 1, "the gradient has one element", dy)
    n = x.numel()
    if takes_few(x, dy) and n:
        return run_kernel(layer_kernels.spread, x.new_empty(x.shape) if out is None else out, dy, n)
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
    """
    _classified(x, label)
    if takes_kernels(x) and takes_kernels(label, dtype=torch.int32):
        made = x.new_empty(()) if out is None else out
        return run_kernel(loss_kernels.accuracy, made, x, label, *x.shape, top_k)
    index = label.view(-1, 1).long()
    own = gathered("labels", x, index)
    places = torch.arange(x.shape[1], device=x.device)
    before = (x > own) | ((x == own) & (places < index))
    right = (before.sum(1) < top_k).sum()
    return right.to(x.dtype) / x.shape[0]


@operator("MultiClassAccuracy", types={"label": INT32}, gradient="undefined")
def multi_class_accuracy(x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """(predictions: (N, D), labels: (N) of int32) -> accuracy and count per label (D)."""
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


@register_operator("APMeter", inputs="2", outputs="1", gradient="undefined")
class APMeter(TorchOperator):
    """The average precision of each class. Inputs: scores and labels, one row per sample.

    Over the samples of all runs of this operator, at most `buffer_size` (1000). Beyond that the
    samples with the highest scores of each class are dropped first, since the buffer is sorted.
    """

    _scores: torch.Tensor | None = None
    _labels: torch.Tensor | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._size = self.GetSingleArgument("buffer_size", 1000)
        require(self._size > 0, "buffer_size is at least 1", self._size)

    def RunOnDevice(self) -> None:
        scores, labels = self.x(0, FLOAT), self.x(1, INT32)
        require(scores.dim() == 2, "scores have two dimensions", scores)
        require(labels.shape == scores.shape, "there is one label per score", labels, scores)
        scores, labels = scores[-self._size :], labels[-self._size :]
        if self._scores is not None and self._labels is not None:
            same = self._scores.size(1) == scores.size(1)
            require(same, "the number of classes is that of earlier runs", scores.size(1))
            old = max(self._size - len(scores), 0)
            kept = self._scores[max(len(self._scores) - old, 0) :]
            scores = torch.cat([kept, scores])
            labels = torch.cat([self._labels[max(len(self._labels) - old, 0) :], labels])
        scores, order = torch.sort(scores, dim=0, descending=True, stable=True)
        labels = labels.gather(0, order)
        ranks = torch.arange(1, len(scores) + 1, dtype=torch.float32)[:, None]
        precision = labels.cumsum(0).float() / ranks
        true = labels == 1
        total = torch.where(true, precision, 0.0).sum(0) / true.sum(0).clamp(min=1)
        self._scores, self._labels = scores, labels
        self.put(0, total)
