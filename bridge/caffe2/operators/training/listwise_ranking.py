# SPDX-License-Identifier: Apache-2.0
"""LambdaRankNdcg: how well scores rank the items of each session, and its gradient.

Follows caffe2/operators/listwise_l2r_op.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32

__all__: list[str] = []

_HUGE = 100.0  # above it log(sigmoid(x)) is 0
_LEAST = 1e-5  # the least divisor, in place of an ideal gain


class _Sessions(FloatOperator):
    """An operator on the items of sessions, concatenated."""

    def sessions(self, i: int, numel: int) -> list[int]:
        """Return the lengths of sessions in input `i`, which add up to at most `numel`."""
        lengths = self.integers(i, INT32)
        self.enforce(min(lengths, default=0) >= 0, "lengths are not negative", lengths)
        self.enforce(
            sum(lengths) <= numel,
            f"the lengths of sessions add up to at most {numel}",
            sum(lengths),
        )
        return lengths


@register_operator("LambdaRankNdcg")
class LambdaRankNdcg(_Sessions):
    """(scores, ratings, lengths of sessions) -> the loss of each session, dscores.

    The loss is summed over pairs, weighted by the change of the gain if they were swapped; with
    `use_ndcg_as_loss` (False) it is the ideal gain minus the gain. It is divided by the ideal gain
    if `use_idcg_normalization` (True) is set. Gains are 2**rating; with `use_ndcg_as_loss` and
    without `use_exp_gain` (True) they are the ratings.
    """

    def RunOnDevice(self) -> None:
        y, ratings = self.x(0), self.x(1)
        self.enforce(y.dim() == 1, "scores have one dimension", y)
        self.enforce(y.numel() == ratings.numel(), "there is one rating per score", y, ratings)
        lengths = self.sessions(2, len(y))
        ratings = ratings.reshape(-1)
        loss, dy = y.new_zeros(len(lengths)), torch.zeros_like(y)
        start = 0
        for i, n in enumerate(lengths):
            self.enforce(start < len(y), "there are items left for each session", start, len(y))
            items = slice(start, start + n)
            if n and float(ratings[items].abs().sum()) >= 1e-6:
                loss[i], dy[items] = self._session(y[items], ratings[items])
            start += n
        self.put(0, loss)
        self.put(1, dy)

    def _session(self, y: torch.Tensor, ratings: torch.Tensor) -> tuple[float, torch.Tensor]:
        by_gain = self.GetSingleArgument("use_ndcg_as_loss", False)
        linear = by_gain and not self.GetSingleArgument("use_exp_gain", True)
        gain = ratings if linear else (ratings * math.log(2)).exp()
        ideal = float((gain * _discounts(ratings)).sum())
        discount = _discounts(y)
        weight = ((discount[:, None] - discount) * (gain[:, None] - gain)).abs()
        sign = torch.where(ratings[:, None] > ratings, 1.0, -1.0)
        apart = sign * (y[:, None] - y)
        dy = -(weight * sign * torch.sigmoid(-apart)).sum(1)
        if by_gain:
            loss = ideal - float((gain * discount).sum())
        else:
            likely = torch.where(apart > _HUGE, 0.0, torch.nn.functional.logsigmoid(apart))
            loss = -float((weight * likely).sum())
        if self.GetSingleArgument("use_idcg_normalization", True):
            loss, dy = loss / max(ideal, _LEAST), dy / max(ideal, _LEAST)
        return loss, dy


def _discounts(by: torch.Tensor) -> torch.Tensor:
    """Return 1 / log2(1 + rank) of each item; the largest of `by` has rank 1."""
    order = torch.sort(by, descending=True, stable=True).indices
    ranks = torch.arange(2, len(by) + 2, dtype=torch.float32)
    return torch.empty_like(ranks).index_copy_(0, order, math.log(2) / ranks.log())


@register_operator("LambdaRankNdcgGradient")
class LambdaRankNdcgGradient(_Sessions):
    """(scores, lengths, output 1 of LambdaRankNdcg, d loss) -> d scores."""

    def RunOnDevice(self) -> None:
        y, cached, dloss = self.x(0), self.x(2), self.x(3)
        self.enforce(
            y.dim() == cached.dim() == 1 and y.shape == cached.shape and len(y) > 0,
            "scores and their gradients have one dimension and the same length",
            y,
            cached,
        )
        lengths = self.sessions(1, len(y))
        self.enforce(dloss.numel() == len(lengths), "there is one loss per session", dloss)
        factors = torch.repeat_interleave(dloss.reshape(-1), torch.tensor(lengths))
        factors = torch.nn.functional.pad(factors, (0, len(y) - len(factors)))
        torch.mul(factors, cached, out=self.out(0, y.shape))
