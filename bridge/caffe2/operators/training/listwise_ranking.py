# SPDX-License-Identifier: Apache-2.0
"""LambdaRankNdcg: how well scores rank the items of each session, and its gradient.

Follows caffe2/operators/listwise_l2r_op.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.base.rows_and_segments import check_lengths, segment_ids

_HUGE = 100.0  # above it log(sigmoid(x)) is 0
_LEAST = 1e-5  # the least divisor, in place of an ideal gain


def _sessions(session_lengths: Tensor, numel: int) -> Tensor:
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
    lengths = _sessions(session_lengths, n).tolist()
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
    of_items = segment_ids(_sessions(session_lengths, n))
    factors = dloss.reshape(-1).index_select(0, of_items)
    factors = torch.constant_pad_nd(factors, (0, n - of_items.shape[0]))
    return torch.mul(factors, dy_cache, out=out)
