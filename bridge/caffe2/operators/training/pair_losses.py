# SPDX-License-Identifier: Apache-2.0
"""Losses of pairs and of similarities, and their gradients."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

__all__ = ["PairWiseLoss"]


@register_operator("MarginRankingCriterion")
class MarginRankingCriterion(FloatOperator):
    """(X1, X2, Y of int32) -> max(0, margin - Y * (X1 - X2)); argument `margin` (1).

    Follows caffe2/operators/margin_ranking_criterion_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        self.put(0, self.apart().clamp_(min=0))

    def apart(self) -> Tensor:
        """Return margin - Y * (X1 - X2)."""
        first, second, y = self.x(0), self.x(1), self.x(2, INT32)
        for other in (second, y):
            self.enforce(
                other.numel() == first.numel(), "the inputs have the same size", other, first
            )
        apart = (second.view(first.shape) - first) * y.view(first.shape)
        return apart.add_(self.GetSingleArgument("margin", 1.0))


@register_operator("MarginRankingCriterionGradient")
class MarginRankingCriterionGradient(MarginRankingCriterion):
    """(X1, X2, Y, dloss) -> dX1, dX2."""

    def RunOnDevice(self) -> None:
        apart = self.apart()
        slope = self.x(2, INT32).view(apart.shape) * self.x(3).view(apart.shape)
        second = slope * (apart >= 0)
        self.put(0, -second)
        self.put(1, second)


@register_operator("CosineEmbeddingCriterion")
class CosineEmbeddingCriterion(FloatOperator):
    """(S, Y of int32) -> 1 - S where Y is 1, else max(0, S - margin); argument `margin` (0).

    Follows caffe2/operators/cosine_embedding_criterion_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        s, y = self.x(0), self.x(1, INT32)
        self.enforce(s.numel() == y.numel(), "S and Y have the same size", s, y)
        margin = self.GetSingleArgument("margin", 0.0)
        self.put(0, torch.where(y.view(s.shape) == 1, 1 - s, (s - margin).clamp_(min=0)))


@register_operator("CosineEmbeddingCriterionGradient")
class CosineEmbeddingCriterionGradient(FloatOperator):
    """(S, Y, dloss) -> dS."""

    def RunOnDevice(self) -> None:
        s, y, dloss = self.x(0), self.x(1, INT32), self.x(2)
        margin = self.GetSingleArgument("margin", 0.0)
        other = dloss.view(s.shape) * (s >= margin)
        self.put(0, torch.where(y.view(s.shape) == 1, -dloss.view(s.shape), other))


class Ranked(FloatOperator):
    """The base class of PairWiseLoss and its gradient."""

    def sessions(self, lengths: int) -> Iterator[tuple[Tensor, Tensor, slice]]:
        """Return X, the labels and the range of each session."""
        x, label = self.x(0), self.x(1)
        self.enforce(x.numel() == label.numel(), "there is one label per X", label, x)
        listed = label.dim() == 1 or (label.dim() == 2 and label.shape[1] == 1)
        self.enforce(listed, "the labels have one dimension, or a second one of size 1", label)
        rows = x.shape[0] if x.dim() else 0
        self.enforce(rows == x.numel(), "a row of X is one number", x)
        sizes = [x.numel()]
        if self.InputSize() > lengths:
            sizes = self.x(lengths, INT32).tolist()
            self.enforce(sum(sizes) == x.numel(), "the lengths add up to the size of X", sizes)
        start = 0
        for size in sizes:
            where = slice(start, start + size)
            yield x.view(-1)[where], label.view(-1)[where], where
            start += size


def ordered_pairs(label: Tensor) -> Tensor:
    """Return for which pairs (i, j) label i is greater than label j by at least 1e-6."""
    return label.unsqueeze(1) - label.unsqueeze(0) >= 1e-6


@register_operator("PairWiseLoss")
class PairWiseLoss(Ranked):
    """(X: (N), labels: (N), optionally lengths) -> the mean of log(1 + exp(Xj - Xi)) by session.

    The mean is over pairs i, j of a session with label i > label j. `lengths` are those of the
    sessions; by default there is one.
    Follows PairWiseLossOp, caffe2/operators/rank_loss_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        losses = []
        sessions = self.sessions(2) if self.x(0).numel() else ()  # lengths are ignored
        for x, label, _ in sessions:
            pairs = ordered_pairs(label)
            apart = (x.unsqueeze(0) - x.unsqueeze(1))[pairs]
            losses.append(float(soft_plus(apart).mean()) if apart.numel() else 0.0)
        self.put(0, torch.tensor(losses, dtype=torch.float32))


def soft_plus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)); 0 below log(1e-6), x above -log(1e-6)."""
    edge = 13.815510557964274
    large: Tensor = torch.where(x > edge, x, x.exp().log1p())
    return large.masked_fill(x < -edge, 0)


@register_operator("PairWiseLossGradient")
class PairWiseLossGradient(Ranked):
    """(X, labels, dY, optionally lengths) -> dX."""

    def RunOnDevice(self) -> None:
        dx = torch.zeros_like(self.x(0))
        dy = self.x(2)
        for i, (x, label, where) in enumerate(self.sessions(3)):
            pairs = ordered_pairs(label)
            count = int(pairs.sum())
            if not count:
                continue
            slope = torch.sigmoid(x.unsqueeze(0) - x.unsqueeze(1)) * pairs * (dy[i] / count)
            dx.view(-1)[where] = slope.sum(0) - slope.sum(1)
        self.put(0, dx)


class Divergence(FloatOperator):
    """The base class of BernoulliJSD and its gradient."""

    def midway(self, x: Tensor, target: Tensor) -> Tensor:
        """Return the mean of two probabilities."""
        self.enforce(x.numel() == target.numel(), "X and the targets have the same size", x, target)
        return (x + target.view(x.shape)) / 2


@register_operator("BernoulliJSD")
class BernoulliJSD(Divergence):
    """(X, T), probabilities -> the Jensen-Shannon divergence of each pair.

    Follows BernoulliJSDOp, caffe2/operators/jsd_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, target = self.x(0), self.x(1)
        own = (entropy(x) + entropy(target).view(x.shape)) / 2
        self.put(0, entropy(self.midway(x, target)).sub_(own))


def entropy(p: Tensor) -> Tensor:
    """Return the entropy of events with probability `p`; 0 within 1e-20 of 0 or 1."""
    q = 1 - p
    found = -(p * p.log() + q * q.log())
    return found.masked_fill_((p < 1e-20) | (q < 1e-20), 0)


@register_operator("BernoulliJSDGradient")
class BernoulliJSDGradient(Divergence):
    """(dY, X, T) -> dX."""

    def RunOnDevice(self) -> None:
        dy, x = self.x(0), self.x(1)
        slope = torch.logit(x, 1e-20) - torch.logit(self.midway(x, self.x(2)), 1e-20)
        self.put(0, slope * dy.view(x.shape) / 2)
