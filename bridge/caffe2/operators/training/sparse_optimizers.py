# SPDX-License-Identifier: Apache-2.0
"""Optimizer steps on some rows of the parameters; the others stay unchanged.

The inputs are those of the operators on whole tensors, and the indices of the rows (int32 or
int64), one per row of the gradient. A row that occurs several times is updated several times, in
order. Parameters and moments are in place; without buffers, copies of them are changed. Follows
caffe2/sgd/adagrad_op.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Function, Out, OutputCount, operator
from bridge.caffe2.operators.base.checks import INT64, INTS, require, require_range, single
from bridge.caffe2.operators.base.cpu_kernels import takes_kernels
from bridge.caffe2.operators.training import step_kernels
from bridge.caffe2.operators.training.ftrl import FtrlSettings, ftrl_step
from bridge.caffe2.operators.training.optimizers import (
    MomentumRule,
    adadelta_step,
    learning_rate_of,
    momentum_step,
    stepped,
    storm_rate,
    writable,
)

# Different rows, their positions in the indices, and their gradients.
Round = tuple[Tensor, Tensor, Tensor]


def _on_rows(name: str, *, inplace: str, **declared: Any) -> Callable[[Function], Function]:
    """Return `operator` for inputs of floats, and `indices`, and maybe `iteration`."""
    types: dict[str, Any] = {"indices": INTS}
    if declared.pop("iterates", False):
        types["iteration"] = INT64
        declared["on_host"] = ("iteration",)
    declared.setdefault("outputs", inplace.count(">"))
    declared |= {"types": types, "effects": ("errors",), "gradient": "undefined"}
    return operator(name, inplace=inplace, **declared)


def _row_width(param: Tensor, indices: Tensor, grad: Tensor) -> int:
    """Return the width of a row. Raises EnforceNotMet: a gradient is not as wide."""
    require(param.dim() > 0, "parameters have at least one dimension", param)
    width = param.numel() // max(param.shape[0], 1)
    if grad.numel() != indices.numel() * width or grad.dim() < indices.dim():
        require(False, "there is one gradient per row", grad, indices, param)
    if width != grad.shape[indices.dim() :].numel() and indices.numel():
        require(False, "a gradient is as wide as a row", grad, indices, param)
    return width


def rounds_of_rows(param: Tensor, indices: Tensor, grad: Tensor) -> list[Round]:
    """Return rounds of different rows; repeated rows follow in further rounds.

    Raises EnforceNotMet: a row is out of range, or a gradient is not as wide as a row.
    """
    width = _row_width(param, indices, grad)
    flat = indices.reshape(-1).long()
    require_range("rows", flat, param.shape[0])
    seen: dict[int, int] = {}
    turns: list[list[int]] = []
    for place, row in enumerate(flat.tolist()):
        turn = seen[row] = seen.get(row, -1) + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(place)
    rows = grad.reshape(flat.numel(), width) if flat.numel() else grad
    if len(turns) == 1:
        return [(flat, torch.arange(flat.numel(), device=flat.device), rows)]
    found = []
    for turn_places in turns:
        places = torch.tensor(turn_places, device=flat.device)
        found.append((flat[places], places, rows[places]))
    return found


def _matrix(x: Tensor, rows: int) -> Tensor:
    """Return a view of a tensor as a matrix."""
    return x.view(rows, x.numel() // max(rows, 1))


@_on_rows("SparseMomentumSGDUpdate", inplace="0>0,1>1!,3>2!")
def sparse_momentum_sgd_update(
    grad: Tensor,
    moment: Tensor,
    lr: Tensor,
    param: Tensor,
    indices: Tensor,
    *,
    rule: MomentumRule,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(gradient, momentum, rate, parameters, rows) -> steps, momentum, parameters."""
    rate = learning_rate_of(lr)
    sizes = _rows_for_kernel(param, indices, grad, lr, moment)
    if sizes is not None and moment.numel() == param.numel():
        given = (indices, lr, *sizes, rule.momentum, rule.nesterov)
        return stepped(step_kernels.momentum, out, (grad, moment, param), *given)
    rounds = rounds_of_rows(param, indices, grad)
    new_param, new_moment = writable(out, 2, param), writable(out, 1, moment)
    n = param.shape[0]
    params, moments = _matrix(new_param, n), _matrix(new_moment, n)
    steps = torch.empty_like(grad)
    by_row = steps.view(indices.numel(), params.shape[1])
    for rows, places, part in rounds:
        step, new = momentum_step(part, moments[rows], rate, rule)
        by_row[places], moments[rows] = step, new
        params[rows] -= step
    return steps, new_moment, new_param


def _squares(g: Tensor, by_row: bool) -> Tensor:
    """Return the squares of gradients, or their mean in each row."""
    return (g * g).mean(1, keepdim=True) if by_row else g * g


def _rows_for_kernel(
    param: Tensor, indices: Tensor, grad: Tensor, lr: Tensor | None, *tables: Tensor
) -> tuple[int, int, int, bool] | None:
    """Return the sizes for kernels of `step_kernels`; None: they cannot be used."""
    width = _row_width(param, indices, grad)
    given = (param, grad, *tables) if lr is None else (param, grad, lr, *tables)
    if not takes_kernels(*given) or not indices.is_cpu or not indices.is_contiguous():
        return None
    return indices.numel(), param.shape[0], width, indices.dtype is torch.int64


class AdagradRule:
    """Arguments `epsilon` (1e-5), `weight_decay` (0), `decay` (1, and nothing else).

    `by_row`: there is one moment per row, which grows by the mean square, as RowWise types have it.
    """

    takes = "float epsilon, float decay, float weight_decay"

    def __init__(self, arguments: Arguments) -> None:
        decay = arguments.single("decay", 1.0)
        require(decay == 1.0, "decay is 1", decay)
        self.epsilon = single(arguments.single("epsilon", 1e-5))
        self.weight_decay = single(arguments.single("weight_decay", 0.0))
        self.by_row = arguments.type.startswith("RowWise")


@_on_rows("SparseAdagrad", inplace="0>0!,1>1!")
@_on_rows("RowWiseSparseAdagrad", inplace="0>0!,1>1!")
def sparse_adagrad(
    param: Tensor,
    moment: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    rule: AdagradRule,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment, rows, gradient, rate) -> parameters, moment."""
    sizes = _rows_for_kernel(param, indices, grad, lr, moment)
    rate, by_row = learning_rate_of(lr), rule.by_row
    n = param.shape[0]
    fits = moment.numel() == (n if by_row else param.numel())
    require(fits, f"there is one moment per {'row' if by_row else 'parameter'}", moment, param)
    if sizes is not None:
        given = (indices, grad, lr, *sizes, rule.epsilon, rule.weight_decay, by_row)
        return stepped(step_kernels.sparse_adagrad, out, (param, moment), *given)
    rounds = rounds_of_rows(param, indices, grad)
    new_param, new_moment = writable(out, 0, param), writable(out, 1, moment)
    params, moments = _matrix(new_param, n), _matrix(new_moment, n)
    for rows, _, g in rounds:
        g = g + rule.weight_decay * params[rows] if rule.weight_decay else g
        h = moments[rows] + _squares(g, by_row)
        moments[rows] = h
        params[rows] += rate * g / (h.sqrt() + rule.epsilon)
    return new_param, new_moment


class AdamRule:
    """Arguments `beta1` (0.9), `beta2` (0.999), `epsilon` (1e-5), `enableRAdam` (False).

    `by_row`: there is one second moment per row, of mean squares, as RowWise types have it.
    """

    takes = "float beta1, float beta2, float epsilon, bool enableRAdam"

    def __init__(self, arguments: Arguments) -> None:
        self.beta1 = single(arguments.single("beta1", 0.9))
        self.beta2 = single(arguments.single("beta2", 0.999))
        self.epsilon = single(arguments.single("epsilon", 1e-5))
        self.rectified = bool(arguments.single("enableRAdam", False))
        self.by_row = arguments.type.startswith("RowWise")

    def scale(self, t: int) -> tuple[float, bool]:
        """Return the factor of step `t`, and whether it is divided by the deviation (RAdam)."""
        beta1, beta2 = self.beta1, self.beta2
        correction = math.sqrt(1 - beta2**t) / (1 - beta1**t)
        if not self.rectified:
            return correction, True
        limit = 2 / (1 - beta2) - 1
        rho = limit - 2 * t * beta2**t / (1 - beta2**t)
        if rho < 5:
            return 1 / (1 - beta1**t), False
        ratio = (rho - 4) * (rho - 2) / rho * limit / ((limit - 4) * (limit - 2))
        return math.sqrt(ratio) * correction, True


@_on_rows("SparseAdam", iterates=True, inplace="0>0!,1>1!,2>2!", outputs="3-4")
@_on_rows("RowWiseSparseAdam", iterates=True, inplace="0>0!,1>1!,2>2!", outputs="3-4")
def sparse_adam(
    param: Tensor,
    moment_1: Tensor,
    moment_2: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    iteration: Tensor,
    *,
    rule: AdamRule,
    outputs: OutputCount = 4,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment 1, moment 2, rows, gradient, rate, iteration) -> the first three.

    An optional fourth output are the steps without the rate.
    """
    sizes = _rows_for_kernel(param, indices, grad, lr, moment_1, moment_2)
    rate, by_row, n = learning_rate_of(lr), rule.by_row, param.shape[0]
    require(
        moment_1.numel() == param.numel() and moment_2.numel() == (n if by_row else param.numel()),
        "the moments have the sizes of the parameters",
        *(moment_1, moment_2, param),
    )
    inputs = param, moment_1, moment_2
    if sizes is not None and takes_kernels(iteration, dtype=torch.int64):
        states = (*inputs, grad) if outputs == 4 else inputs
        given = (*(() if outputs == 4 else (None,)), indices, grad, lr, iteration, *sizes)
        numbers = (rule.beta1, rule.beta2, rule.epsilon, rule.scale, by_row)
        return stepped(step_kernels.sparse_adam, out, states, *given, *numbers)
    factor, divides = rule.scale(int(iteration.view(-1)[0]) + 1)
    rounds = rounds_of_rows(param, indices, grad)
    made = [writable(out, o, one) for o, one in enumerate(inputs)]
    params, first, second = (_matrix(one, n) for one in made)
    by_row_steps = torch.empty_like(grad)
    for rows, places, g in rounds:
        m = first[rows] * rule.beta1 + g * (1 - rule.beta1)
        v = second[rows] * rule.beta2 + _squares(g, by_row) * (1 - rule.beta2)
        step = factor * m / (v.sqrt() + rule.epsilon) if divides else factor * m
        first[rows], second[rows] = m, v
        params[rows] += rate * step
        if outputs == 4:
            by_row_steps.view(indices.numel(), params.shape[1])[places] = step
    return (*made, by_row_steps)


@_on_rows("SparseAdadelta", inplace="0>0!,1>1!,2>2!")
def sparse_adadelta(
    param: Tensor,
    moment: Tensor,
    moment_delta: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    epsilon: float = 1e-5,
    decay: float = 0.95,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, squares of gradients, squares of steps, rows, gradient, rate)."""
    require(0 < decay < 1, "decay is between 0 and 1", decay)
    rate = learning_rate_of(lr)
    sizes = _rows_for_kernel(param, indices, grad, lr, moment, moment_delta)
    states = (param, moment, moment_delta)
    if sizes is not None and moment.numel() == moment_delta.numel() == param.numel():
        return stepped(
            step_kernels.adadelta, out, states, indices, grad, lr, *sizes, epsilon, decay
        )
    rounds = rounds_of_rows(param, indices, grad)
    made = tuple(writable(out, o, one) for o, one in enumerate(states))
    w, h, d = (_matrix(one, param.shape[0]) for one in made)
    for rows, _, g in rounds:
        w[rows], h[rows], d[rows] = adadelta_step(
            w[rows], h[rows], d[rows], g, rate, epsilon, decay
        )
    return made


@_on_rows("SparseFtrl", inplace="0>0!,1>1!")
def sparse_ftrl(
    var: Tensor,
    n_z: Tensor,
    indices: Tensor,
    grad: Tensor,
    alpha: Tensor | None = None,
    *,
    settings: FtrlSettings,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, pairs of n and z, rows, gradient, optionally alpha) -> parameters, pairs."""
    settings.inverse(alpha)  # raises before anything is written
    sizes = _rows_for_kernel(var, indices, grad, alpha, n_z)
    if sizes is not None and n_z.numel() == 2 * var.numel():
        given = (indices, grad, alpha, *sizes, *settings.for_kernel(alpha))
        return stepped(step_kernels.ftrl, out, (var, n_z), *given)
    rounds = rounds_of_rows(var, indices, grad)
    new_var, new_pairs = writable(out, 0, var), writable(out, 1, n_z)
    params = _matrix(new_var, var.shape[0])
    pairs = new_pairs.view(*params.shape, 2)
    for rows, _, g in rounds:
        n, z = pairs[rows].unbind(2)
        params[rows], n, z = ftrl_step(params[rows], n, z, g, alpha, settings)
        pairs[rows] = torch.stack([n, z], 2)
    return new_var, new_pairs


@_on_rows("SparseWngrad", inplace="0>0!,1>1!")
def sparse_wngrad(
    param: Tensor,
    moment: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    epsilon: float = 1e-5,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, b, rows, gradient, rate) -> parameters, b."""
    rate, scale = learning_rate_of(lr), moment.view(())
    sizes = _rows_for_kernel(param, indices, grad, lr, moment)
    if sizes is not None:
        return stepped(
            step_kernels.wngrad, out, (param, moment), indices, grad, lr, *sizes, epsilon
        )
    rounds = rounds_of_rows(param, indices, grad)
    new_param, new_moment = writable(out, 0, param), writable(out, 1, moment)
    rate = rate / (scale + epsilon)
    params = _matrix(new_param, param.shape[0])
    for rows, _, part in rounds:
        params[rows] += rate * part
    if rounds:
        # Without epsilon, unlike the operator on whole tensors.
        new_moment.add_(grad.square().sum() / new_moment)
    return new_param, new_moment


@_on_rows("SparseStorm", inplace="0>0!,1>1!,2>2!")
def sparse_storm(
    param: Tensor,
    moment: Tensor,
    grad_sq_sum: Tensor,
    grad: Tensor,
    indices: Tensor,
    lr: Tensor,
    *,
    momentum: float = 10.0,
    beta: float = 0.1,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment, sum of squares, gradient, rows, rate) -> the first three."""
    rate = learning_rate_of(lr)
    sizes = _rows_for_kernel(param, indices, grad, lr, moment, grad_sq_sum)
    states = (param, moment, grad_sq_sum)
    if sizes is not None and moment.numel() == param.numel() and grad_sq_sum.numel() == 1:
        return stepped(step_kernels.storm, out, states, indices, grad, lr, *sizes, momentum, beta)
    rounds = rounds_of_rows(param, indices, grad)
    made = tuple(writable(out, o, one) for o, one in enumerate(states))
    rate, alpha, total = storm_rate(grad_sq_sum, grad, rate, momentum, beta)
    params, moments = (_matrix(one, param.shape[0]) for one in made[:2])
    for rows, _, g in rounds:
        m = g + (1 - alpha) * (moments[rows] - g)
        moments[rows] = m
        params[rows] += rate * m
    if rounds:
        made[2].copy_(total)
    return made
