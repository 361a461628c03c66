# SPDX-License-Identifier: Apache-2.0
"""Optimizer steps on some rows of the parameters; the others stay unchanged.

The inputs are those of the operators on whole tensors, and the indices of the rows (int32 or
int64), one per row of the gradient. A row that occurs several times is updated several times, in
order. Parameters and moments are in place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT64, INTS
from bridge.caffe2.operators.training.ftrl import ftrl_step
from bridge.caffe2.operators.training.optimizers import (
    Optimizer,
    adadelta_step,
    adam_factors,
    momentum_step,
    storm_rate,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["SparseAdagrad", "SparseAdam"]


class SparseOptimizer(Optimizer):
    """An optimizer of rows: `indices` and `gradient` are the numbers of these inputs."""

    indices = 3
    gradient = 4

    def in_place(self, i: int, o: int) -> Tensor:
        """Return the output `o`, in place of input `i`, with its elements, writable."""
        x = self.x(i)
        room = self.out(o, x.shape)
        if room.data_ptr() != x.data_ptr():  # the input was read-only
            room.copy_(x)
        return room

    def rounds(self, param: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield different rows, their positions in the indices, and their gradients.

        Repeated rows follow in further rounds.
        Raises EnforceNotMet: a row is out of range, or a gradient is not as wide as a row.
        """
        index, g = self.x(self.indices, INTS), self.x(self.gradient)
        self.enforce(param.dim() > 0, "parameters have at least one dimension", param)
        width = param.numel() // max(param.shape[0], 1)
        self.enforce(
            g.numel() == index.numel() * width, "there is one gradient per row", g, index, param
        )
        flat = index.reshape(-1).long()
        self.enforce_range("rows", flat, param.shape[0])
        seen: dict[int, int] = {}
        turns: list[list[int]] = []
        for place, row in enumerate(flat.tolist()):
            turn = seen[row] = seen.get(row, -1) + 1
            if turn == len(turns):
                turns.append([])
            turns[turn].append(place)
        rows = g.reshape(len(flat), width) if len(flat) else g
        for turn_places in turns:
            places = torch.tensor(turn_places)
            yield flat[places], places, rows[places]


def as_rows(x: Tensor) -> Tensor:
    """Return a view of a tensor as a matrix."""
    return x.view(x.shape[0], x.shape[1:].numel())


@register_operator("SparseMomentumSGDUpdate")
class SparseMomentumSGDUpdate(SparseOptimizer):
    """(gradient, momentum, rate, parameters, rows) -> steps, momentum, parameters."""

    indices = 4
    gradient = 0

    def RunOnDevice(self) -> None:
        lr = self.rate(2)
        rounds = list(self.rounds(self.x(3)))
        param, moment = as_rows(self.in_place(3, 2)), as_rows(self.in_place(1, 1))
        g = self.x(0)
        steps = self.out(0, g.shape).view(self.x(4, INTS).numel(), param.shape[1])
        for rows, places, part in rounds:
            step, new = momentum_step(self, part, moment[rows], lr)
            steps[places], moment[rows] = step, new
            param[rows] -= step


@register_operator("SparseAdagrad")
class SparseAdagrad(SparseOptimizer):
    """(parameters, moment, rows, gradient, rate) -> parameters, moment; argument `epsilon`.

    Follows SparseAdagradOp, caffe2/sgd/adagrad_op.h, PyTorch 1.8.1.
    """

    indices = 2
    gradient = 3

    def RunOnDevice(self) -> None:
        self.enforce(self.single("decay", 1.0) == 1.0, "decay is 1")
        lr, epsilon = self.rate(4), self.single("epsilon", 1e-5)
        decay = self.single("weight_decay", 0.0)
        rounds = list(self.rounds(self.x(0)))
        param = as_rows(self.in_place(0, 0))
        moment = self.in_place(1, 1)
        moment = moment.view(param.shape[0], moment.numel() // max(param.shape[0], 1))
        for rows, _, g in rounds:
            g = g + decay * param[rows]
            h = moment[rows] + self.squares(g)
            moment[rows] = h
            param[rows] += lr * g / (h.sqrt() + epsilon)

    def squares(self, g: Tensor) -> Tensor:
        """Return what is added to the moment."""
        return g * g


@register_operator("RowWiseSparseAdagrad")
class RowWiseSparseAdagrad(SparseAdagrad):
    """SparseAdagrad with one moment per row, which grows by the mean square."""

    def squares(self, g: Tensor) -> Tensor:
        return (g * g).mean(1, keepdim=True)


@register_operator("SparseAdam")
class SparseAdam(SparseOptimizer):
    """(parameters, moment 1, moment 2, rows, gradient, rate, iteration) -> the first three.

    An optional fourth output are the steps without the rate.
    Arguments: those of Adam, and `enableRAdam` (False).
    Follows SparseAdamOp, caffe2/sgd/adam_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        lr, epsilon = self.rate(5), self.single("epsilon", 1e-5)
        beta1, beta2, correction = adam_factors(self, 6)
        rectified = self._rectified(beta1, beta2)
        rounds = list(self.rounds(self.x(0)))
        param, first = as_rows(self.in_place(0, 0)), as_rows(self.in_place(1, 1))
        second = self.in_place(2, 2)
        second = second.view(param.shape[0], second.numel() // max(param.shape[0], 1))
        steps = None
        if self.OutputSize() == 4:
            steps = self.out(3, self.x(self.gradient).shape)
            steps = steps.view(self.x(self.indices, INTS).numel(), param.shape[1])
        for rows, places, g in rounds:
            m = first[rows] * beta1 + g * (1 - beta1)
            v = second[rows] * beta2 + self.squares(g) * (1 - beta2)
            if rectified is None:
                step = correction * m / (v.sqrt() + epsilon)
            elif rectified[0]:
                step = rectified[1] * correction * m / (v.sqrt() + epsilon)
            else:
                step = rectified[1] * m
            first[rows], second[rows] = m, v
            param[rows] += lr * step
            if steps is not None:
                steps[places] = step

    def squares(self, g: Tensor) -> Tensor:
        """Return what the second moment is a mean of."""
        return g * g

    def _rectified(self, beta1: float, beta2: float) -> tuple[bool, float] | None:
        """Return whether the variance is used, and the factor of the steps (RAdam)."""
        if not self.GetSingleArgument("enableRAdam", False):
            return None
        t = int(self.x(6, INT64).view(-1)[0]) + 1
        limit = 2 / (1 - beta2) - 1
        rho = limit - 2 * t * beta2**t / (1 - beta2**t)
        if rho < 5:
            return False, 1 / (1 - beta1**t)
        ratio = (rho - 4) * (rho - 2) / rho * limit / ((limit - 4) * (limit - 2))
        return True, math.sqrt(ratio)


@register_operator("RowWiseSparseAdam")
class RowWiseSparseAdam(SparseAdam):
    """SparseAdam with one second moment per row, of mean squares."""

    def squares(self, g: Tensor) -> Tensor:
        return (g * g).mean(1, keepdim=True)


@register_operator("SparseAdadelta")
class SparseAdadelta(SparseOptimizer):
    """(parameters, squares of gradients, squares of steps, rows, gradient, rate)."""

    def RunOnDevice(self) -> None:
        lr = self.rate(5)
        rounds = list(self.rounds(self.x(0)))
        param, h, d = (as_rows(self.in_place(i, i)) for i in range(3))
        for rows, _, g in rounds:
            param[rows], h[rows], d[rows] = adadelta_step(
                self, param[rows], h[rows], d[rows], g, lr
            )


@register_operator("SparseFtrl")
class SparseFtrl(SparseOptimizer):
    """(parameters, pairs of n and z, rows, gradient, optionally alpha) -> parameters, pairs."""

    indices = 2
    gradient = 3

    def RunOnDevice(self) -> None:
        rounds = list(self.rounds(self.x(0)))
        param = as_rows(self.in_place(0, 0))
        pairs = self.in_place(1, 1).view(*param.shape, 2)
        for rows, _, g in rounds:
            n, z = pairs[rows].unbind(2)
            param[rows], n, z = ftrl_step(self, param[rows], n, z, g, 4)
            pairs[rows] = torch.stack([n, z], 2)


@register_operator("SparseWngrad")
class SparseWngrad(SparseOptimizer):
    """(parameters, b, rows, gradient, rate) -> parameters, b; argument `epsilon` (1e-5)."""

    indices = 2
    gradient = 3

    def RunOnDevice(self) -> None:
        b, g = self.x(1), self.x(3)
        rate = self.rate(4) / (b.view(()) + self.single("epsilon", 1e-5))
        rounds = list(self.rounds(self.x(0)))
        param = as_rows(self.in_place(0, 0))
        for rows, _, part in rounds:
            param[rows] += rate * part
        if rounds:
            # Without epsilon, unlike the operator on whole tensors.
            self.in_place(1, 1).add_(g.square().sum() / b)


@register_operator("SparseStorm")
class SparseStorm(SparseOptimizer):
    """(parameters, moment, sum of squares, gradient, rows, rate) -> the first three."""

    indices = 4
    gradient = 3

    def RunOnDevice(self) -> None:
        rounds = list(self.rounds(self.x(0)))
        if not rounds:
            return
        rate, alpha, total = storm_rate(self, self.x(2), self.x(3), self.rate(5))
        param, moment = as_rows(self.in_place(0, 0)), as_rows(self.in_place(1, 1))
        for rows, _, g in rounds:
            m = g + (1 - alpha) * (moment[rows] - g)
            moment[rows] = m
            param[rows] += rate * m
        self.in_place(2, 2).copy_(total)
