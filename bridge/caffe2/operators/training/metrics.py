# SPDX-License-Identifier: Apache-2.0
"""Measures of predictions: AveragedLoss, Accuracy, MultiClassAccuracy, Perplexity."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Accuracy", "AveragedLoss", "MultiClassAccuracy"]


@register_operator("AveragedLoss")
class AveragedLoss(FloatOperator):
    """X -> the mean of all elements, 0-d; 0 if there are none.

    Follows AveragedLoss, caffe2/operators/loss_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.put(0, x.mean() if x.numel() else torch.zeros(()))


@register_operator("AveragedLossGradient")
class AveragedLossGradient(FloatOperator):
    """(X, dY: ()) -> dX."""

    def RunOnDevice(self) -> None:
        x, dy = self.x(0), self.x(1)
        self.enforce(dy.numel() == 1, "the gradient has one element", dy)
        self.out(0, x.shape).copy_(dy.view(()) / max(x.numel(), 1))


class Classified(FloatOperator):
    """An operator on predictions (N, D) and int32 labels (N) in [0, D)."""

    def classified(self) -> tuple[Tensor, Tensor]:
        """Return the predictions, and the labels as int64."""
        x, label = self.x(0), self.x(1, INT32)
        self.enforce(
            x.dim() == 2 and label.dim() == 1,
            "X has two dimensions and the labels have one",
            x,
            label,
        )
        self.enforce(label.shape[0] == x.shape[0], "there is one label per row", label, x)
        self.enforce_range("labels", label, x.shape[1])
        return x, label.long()


@register_operator("Accuracy")
class Accuracy(Classified):
    """(predictions: (N, D), labels: (N) of int32) -> the fraction of labels in the top `k`.

    Argument: `top_k` (1). Of equal predictions the earlier ranks first.
    Follows AccuracyOp, caffe2/operators/accuracy_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, label = self.classified()
        index = label.view(-1, 1)
        own = x.gather(1, index)
        before = (x > own) | ((x == own) & (torch.arange(x.shape[1]) < index))
        right = (before.sum(1) < self.GetSingleArgument("top_k", 1)).sum()
        self.put(0, right.float() / x.shape[0])


@register_operator("MultiClassAccuracy")
class MultiClassAccuracy(Classified):
    """(predictions: (N, D), labels: (N) of int32) -> accuracy and count per label (D).

    Follows MultiClassAccuracyOp, caffe2/operators/multi_class_accuracy_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, index = self.classified()
        classes = x.shape[1]
        amounts = torch.bincount(index, minlength=classes)
        right = torch.bincount(index[x.argmax(1) == index], minlength=classes)
        self.put(0, right.float() / amounts.clamp(min=1))
        self.out(1, (classes,), c10.int32).copy_(amounts)


@register_operator("Perplexity")
class Perplexity(FloatOperator):
    """X: (N) of probabilities -> the product of X^(-1 / N), 0-d."""

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 1, "X has one dimension", x)
        self.put(0, x.pow(-1 / max(x.numel(), 1)).prod())
