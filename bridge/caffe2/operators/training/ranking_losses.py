# SPDX-License-Identifier: Apache-2.0
"""Losses of pairs, of similarities, and of the ranks of items in sessions; and their gradients.

LambdaRankNdcg follows caffe2/operators/listwise_l2r_op.cc, PyTorch 1.8.1. Follows
margin_ranking_criterion_op.cc, cosine_embedding_criterion_op.cc, rank_loss_op.cc and jsd_op.cc in
caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.base.rows_and_segments import check_lengths, segment_ids


def _apart(x1: Tensor, x2: Tensor, y: Tensor, margin: float) -> Tensor:
    """Return margin - Y * (X1 - X2)."""
    for other in (x2, y):
        require(other.numel() == x1.numel(), "the inputs have the same size", other, x1)
    return (x2.view(x1.shape) - x1) * y.view(x1.shape) + margin


@operator("MarginRankingCriterion", types={"y": INT32}, gradient="$Gradient i0 i1 i2 g0 > 0 1")
def margin_ranking_criterion(
    x1: Tensor, x2: Tensor, y: Tensor, *, margin: float = 1.0, out: Out = None
) -> Tensor:
    """(X1, X2, Y of int32) -> max(0, margin - Y * (X1 - X2))."""
    return torch.clamp(_apart(x1, x2, y, margin), min=0, out=out)


@operator("MarginRankingCriterionGradient", types={"y": INT32}, defaults=margin_ranking_criterion)
def margin_ranking_criterion_gradient(
    x1: Tensor, x2: Tensor, y: Tensor, dloss: Tensor, *, margin: float
) -> tuple[Tensor, Tensor]:
    """(X1, X2, Y, dloss) -> dX1, dX2."""
    apart = _apart(x1, x2, y, margin)
    second = y.view(apart.shape) * dloss.view(apart.shape) * (apart >= 0)
    return -second, second


@operator("CosineEmbeddingCriterion", types={"y": INT32}, gradient="$Gradient i0 i1 g0 > 0")
def cosine_embedding_criterion(
    s: Tensor, y: Tensor, *, margin: float = 0.0, out: Out = None
) -> Tensor:
    """(S, Y of int32) -> 1 - S where Y is 1, else max(0, S - margin)."""
    require(s.numel() == y.numel(), "S and Y have the same size", s, y)
    return torch.where(y.view(s.shape) == 1, 1 - s, (s - margin).clamp(min=0), out=out)


@operator(
    "CosineEmbeddingCriterionGradient", types={"y": INT32}, defaults=cosine_embedding_criterion
)
def cosine_embedding_criterion_gradient(
    s: Tensor, y: Tensor, dloss: Tensor, *, margin: float, out: Out = None
) -> Tensor:
    """(S, Y, dloss) -> dS."""
    dloss = dloss.view(s.shape)
    return torch.where(y.view(s.shape) == 1, -dloss, dloss * (s >= margin), out=out)


def _sessions(x: Tensor, label: Tensor, lengths: Tensor | None) -> list[tuple[Tensor, Tensor]]:
    """Return X and the labels of each session."""
    require(x.numel() == label.numel(), "there is one label per X", label, x)
    listed = label.dim() == 1 or (label.dim() == 2 and label.shape[1] == 1)
    require(listed, "the labels have one dimension, or a second one of size 1", label)
    rows = x.shape[0] if x.dim() else 0
    require(rows == x.numel(), "a row of X is one number", x)
    sizes = [x.numel()]
    if lengths is not None:
        sizes = lengths.reshape(-1).tolist()
        fits = sum(sizes) == x.numel() and min(sizes, default=0) >= 0
        require(fits, "the lengths add up to the size of X", sizes)
    parts = (torch.split(one.view(-1), sizes) for one in (x, label))
    return list(zip(*parts, strict=True))


def _ordered_pairs(label: Tensor) -> Tensor:
    """Return for which pairs (i, j) label i is greater than label j by at least 1e-6."""
    return label.unsqueeze(1) - label.unsqueeze(0) >= 1e-6


@operator("PairWiseLoss", types={"lengths": INT32}, gradient="$Gradient i0 i1 g0 i2? > 0")
def pair_wise_loss(x: Tensor, label: Tensor, lengths: Tensor | None = None) -> Tensor:
    """(X: (N), labels: (N), optionally lengths) -> the mean of log(1 + exp(Xj - Xi)) by session.

    The mean is over pairs i, j of a session with label i > label j. `lengths` are those of the
    sessions; by default there is one.
    """
    require(label.dim() == 1 or label.shape[1:] == (1,), "there is a label per number", label, x)
    if not x.numel():  # lengths are ignored
        return x.new_zeros((0,))
    losses = []
    for part, labels in _sessions(x, label, lengths):
        pairs = _ordered_pairs(labels)
        found = torch.where(pairs, _soft_plus(part.unsqueeze(0) - part.unsqueeze(1)), 0.0)
        losses.append(found.sum() / pairs.sum().clamp(min=1))
    return torch.stack(losses)


def _soft_plus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)); 0 below log(1e-6), x above -log(1e-6)."""
    edge = 13.815510557964274
    large: Tensor = torch.where(x > edge, x, x.clamp(max=edge).exp().log1p())
    return large.masked_fill(x < -edge, 0)


@operator("PairWiseLossGradient", types={"lengths": INT32})
def pair_wise_loss_gradient(
    x: Tensor, label: Tensor, dy: Tensor, lengths: Tensor | None = None
) -> Tensor:
    """(X, labels, dY, optionally lengths) -> dX."""
    require(dy.dim() == 1, "there is a gradient per session", dy)
    found = []
    for i, (part, labels) in enumerate(_sessions(x, label, lengths)):
        pairs = _ordered_pairs(labels)
        apart = torch.sigmoid(part.unsqueeze(0) - part.unsqueeze(1)) * pairs
        slope = apart * (dy[i] / pairs.sum().clamp(min=1)) if part.numel() else apart
        found.append(slope.sum(0) - slope.sum(1))
    return torch.cat(found).view(x.shape) if found else torch.zeros_like(x)


def _midway(x: Tensor, target: Tensor) -> Tensor:
    """Return the mean of two probabilities."""
    require(x.numel() == target.numel(), "X and the targets have the same size", x, target)
    return (x + target.view(x.shape)) / 2


@operator("BernoulliJSD", gradient="$Gradient g0 i0 i1 > 0")
def bernoulli_jsd(x: Tensor, target: Tensor, *, out: Out = None) -> Tensor:
    """(X, T), probabilities -> the Jensen-Shannon divergence of each pair."""
    middle = _entropy(_midway(x, target))
    own = (_entropy(x) + _entropy(target).view(x.shape)) / 2
    return torch.sub(middle, own, out=out)


def _entropy(p: Tensor) -> Tensor:
    """Return the entropy of events with probability `p`; 0 within 1e-20 of 0 or 1."""
    q = 1 - p
    found = -(p * p.log() + q * q.log())
    return found.masked_fill((p < 1e-20) | (q < 1e-20), 0)


@operator("BernoulliJSDGradient")
def bernoulli_jsd_gradient(dy: Tensor, x: Tensor, target: Tensor, *, out: Out = None) -> Tensor:
    """(dY, X, T) -> dX."""
    slope = torch.logit(x, 1e-20) - torch.logit(_midway(x, target), 1e-20)
    return torch.mul(slope, dy.view(x.shape) / 2, out=out)


_HUGE = 100.0  # above it log(sigmoid(x)) is 0
_LEAST = 1e-5  # the least divisor, in place of an ideal gain


def _session_lengths(session_lengths: Tensor, numel: int) -> Tensor:
    """Return the lengths of sessions, which add up to at most `numel`."""
    lengths = session_lengths.reshape(-1)
    check_lengths(lengths)
    total = int(lengths.sum())
    require(total <= numel, f"the lengths of sessions add up to at most {numel}", total)
    return lengths


@operator(
    "LambdaRankNdcg",
    types={"session_lengths": INT32},
    gradient="$Gradient i0 i2 o1 g0 > 0",
    effects=("values",),
)
def lambda_rank_ndcg(
    y: Tensor,
    ratings: Tensor,
    session_lengths: Tensor,
    *,
    use_ndcg_as_loss: bool = False,
    use_idcg_normalization: bool = True,
    use_exp_gain: bool = True,
) -> tuple[Tensor, Tensor]:
    """(scores, ratings, lengths of sessions) -> the loss of each session, dscores.

    The loss is summed over pairs, weighted by the change of the gain if they were swapped; with
    `use_ndcg_as_loss` it is the ideal gain minus the gain. It is divided by the ideal gain if
    `use_idcg_normalization` is set. Gains are 2**rating; with `use_ndcg_as_loss` and without
    `use_exp_gain` they are the ratings.
    """
    require(y.dim() == 1, "scores have one dimension", y)
    require(y.numel() == ratings.numel(), "there is one rating per score", y, ratings)
    n = y.shape[0]
    lengths = _session_lengths(session_lengths, n).tolist()
    scores, y, ratings = y, y.detach(), ratings.detach().reshape(-1)
    loss, dy = y.new_zeros(len(lengths)), torch.zeros_like(y)
    start = 0
    for i, count in enumerate(lengths):
        require(start < n, "there are items left for each session", start, n)
        items = slice(start, start + count)
        if count and float(ratings[items].abs().sum()) >= 1e-6:
            linear = use_ndcg_as_loss and not use_exp_gain
            gain = ratings[items] if linear else (ratings[items] * math.log(2)).exp()
            found = _session(y[items], ratings[items], gain, use_ndcg_as_loss)
            ideal = max(found[2], _LEAST) if use_idcg_normalization else 1.0
            loss[i], dy[items] = found[0] / ideal, found[1] / ideal
        start += count
    if scores.requires_grad and lengths:  # autograd's gradient is that of Caffe2
        change = torch.split_with_sizes(((scores - y) * dy)[:start], lengths)
        loss = loss + torch.stack([one.sum() for one in change])
    return loss, dy


def _session(
    y: Tensor, ratings: Tensor, gain: Tensor, by_gain: bool
) -> tuple[float, Tensor, float]:
    """Return the loss of a session, its gradient, and the ideal gain."""
    ideal = float((gain * _discounts(ratings)).sum())
    discount = _discounts(y)
    weight = ((discount.unsqueeze(1) - discount) * (gain.unsqueeze(1) - gain)).abs()
    sign = (ratings.unsqueeze(1) > ratings).to(y.dtype) * 2 - 1
    apart = sign * (y.unsqueeze(1) - y)
    dy = -(weight * sign * torch.sigmoid(-apart)).sum(1)
    if by_gain:
        return ideal - float((gain * discount).sum()), dy, ideal
    likely = functional.logsigmoid(apart).masked_fill(apart > _HUGE, 0.0)
    return -float((weight * likely).sum()), dy, ideal


def _discounts(by: Tensor) -> Tensor:
    """Return 1 / log2(1 + rank) of each item; the largest of `by` has rank 1."""
    order = torch.sort(by, descending=True, stable=True).indices
    ranks = torch.arange(2, by.shape[0] + 2, dtype=torch.float32, device=by.device)
    return torch.empty_like(ranks).index_copy_(0, order, math.log(2) / ranks.log())


@operator("LambdaRankNdcgGradient", types={"session_lengths": INT32}, effects=("values",))
def lambda_rank_ndcg_gradient(
    y: Tensor, session_lengths: Tensor, dy_cache: Tensor, dloss: Tensor, *, out: Out = None
) -> Tensor:
    """(scores, lengths, output 1 of LambdaRankNdcg, d loss) -> d scores."""
    n = y.numel()
    fits = y.dim() == dy_cache.dim() == 1 and y.shape == dy_cache.shape and n > 0
    require(fits, "scores and their gradients have one dimension and the same length", y, dy_cache)
    fits = dloss.numel() == session_lengths.numel()
    require(fits, "there is one loss per session", dloss, session_lengths)
    of_items = segment_ids(_session_lengths(session_lengths, n))
    factors = dloss.reshape(-1).index_select(0, of_items)
    factors = torch.constant_pad_nd(factors, (0, n - of_items.shape[0]))
    return torch.mul(factors, dy_cache, out=out)
