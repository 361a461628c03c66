# SPDX-License-Identifier: Apache-2.0
"""Optimizer steps on some rows of the parameters; the others stay unchanged.

The inputs are those of the operators on whole tensors, and the indices of the rows (int32 or
int64), one per row of the gradient. A row that occurs several times is updated several times, in
order. Parameters and moments are in place; without buffers, copies of them are changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import (
    FLOAT,
    INT64,
    INTS,
    require,
    require_range,
    single,
)
from bridge.caffe2.operators.base.cpu_kernels import address_of, recordable, takes_kernels
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.training import sparse_kernels
from bridge.caffe2.operators.training.ftrl import FtrlSettings, ftrl_step
from bridge.caffe2.operators.training.optimizers import (
    adadelta_step,
    learning_rate_of,
    momentum_step,
    storm_rate,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from torch import Tensor

    from bridge.caffe2.execution.declaration import Arguments, Out, OutputCount

    Function = TypeVar("Function", bound=Callable[..., Any])

    # Different rows, their positions in the indices, and their gradients.
    Round = tuple[Tensor, Tensor, Tensor]

__all__ = ["AdagradRule", "rounds_of_rows", "sparse_adagrad"]


def _on_rows(
    name: str, *floats: str, inplace: str, **declared: Any
) -> Callable[[Function], Function]:
    """Return `operator` for inputs `floats`, and `indices`, and maybe `iteration`."""
    types: dict[str, Any] = dict.fromkeys(floats, FLOAT) | {"indices": INTS}
    if declared.pop("iterates", False):
        types["iteration"] = INT64
        declared["on_host"] = ("iteration",)
    return operator(
        name, inplace=inplace, types=types, effects=("values",), gradient="undefined", **declared
    )


def _check(param: Tensor, indices: Tensor, grad: Tensor) -> int:
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
    width = _check(param, indices, grad)
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


def _writable(out: Out, o: int, x: Tensor) -> Tensor:
    """Return the buffer of output `o`, which holds `x`, or a copy of `x`."""
    if out is None:
        return x.clone()
    room: Tensor = out[o]
    return room if room is x else room.copy_(x)


def _matrix(x: Tensor, rows: int) -> Tensor:
    """Return a view of a tensor as a matrix."""
    return x.view(rows, x.numel() // max(rows, 1))


@_on_rows(
    "SparseMomentumSGDUpdate",
    "grad",
    "moment",
    "lr",
    "param",
    inplace="0>0,1>1!,3>2!",
    outputs=3,
)
def sparse_momentum_sgd_update(
    grad: Tensor,
    moment: Tensor,
    lr: Tensor,
    param: Tensor,
    indices: Tensor,
    *,
    momentum: float = 0.0,
    nesterov: bool = False,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(gradient, momentum, rate, parameters, rows) -> steps, momentum, parameters."""
    rate = learning_rate_of(lr)
    rounds = rounds_of_rows(param, indices, grad)
    new_param, new_moment = _writable(out, 2, param), _writable(out, 1, moment)
    n = param.shape[0]
    params, moments = _matrix(new_param, n), _matrix(new_moment, n)
    steps = torch.empty_like(grad)
    by_row = steps.view(indices.numel(), params.shape[1])
    for rows, places, part in rounds:
        step, new = momentum_step(part, moments[rows], rate, momentum, nesterov)
        by_row[places], moments[rows] = step, new
        params[rows] -= step
    return steps, new_moment, new_param


_ADAGRAD = ("param", "moment", "grad", "lr")


def _squares(g: Tensor, by_row: bool) -> Tensor:
    """Return the squares of gradients, or their mean in each row."""
    return (g * g).mean(1, keepdim=True) if by_row else g * g


def _has_kernel(indices: Tensor, *tables: Tensor) -> bool:
    """Return whether a kernel of `sparse_kernels` can update these tables."""
    return takes_kernels(*tables) and indices.is_cpu and indices.is_contiguous()


class AdagradRule:
    """Arguments `epsilon` (1e-5), `weight_decay` (0), `decay` (1, and nothing else).

    `by_row`: there is one moment per row, which grows by the mean square, as RowWise types have it.
    """

    __slots__ = ("by_row", "epsilon", "weight_decay")
    takes = "float epsilon, float decay, float weight_decay"

    def __init__(self, arguments: Arguments) -> None:
        decay = arguments.single("decay", 1.0)
        require(decay == 1.0, "decay is 1", decay)
        self.epsilon = single(arguments.single("epsilon", 1e-5))
        self.weight_decay = single(arguments.single("weight_decay", 0.0))
        self.by_row = arguments.type.startswith("RowWise")

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> AdagradRule:
        """Return the rule that arguments describe. Raises EnforceNotMet: `decay` is not 1."""
        return cls(arguments)


@recordable
def _adagrad_by_kernel(
    param: Tensor, moment: Tensor, indices: Tensor, grad: Tensor, lr: Tensor, rule: AdagradRule
) -> tuple[Tensor, Tensor]:
    rows, n = param.shape[0], indices.numel()
    width = param.numel() // max(rows, 1)
    done = sparse_kernels.adagrad(
        address_of(param, rows * width),
        address_of(moment, rows if rule.by_row else rows * width),
        indices.data_ptr(),
        indices.dtype is torch.int64,
        address_of(grad, n * width),
        lr.data_ptr(),
        *(n, rows, width, rule.epsilon, rule.weight_decay, rule.by_row),
    )
    if not done:
        require_range("rows", indices, rows)
    return param, moment


@_on_rows("SparseAdagrad", *_ADAGRAD, inplace="0>0!,1>1!")
@_on_rows("RowWiseSparseAdagrad", *_ADAGRAD, inplace="0>0!,1>1!")
def sparse_adagrad(
    param: Tensor,
    moment: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    rule: AdagradRule,
    out: Out = None,
) -> tuple[Tensor, Tensor]:
    """(parameters, moment, rows, gradient, rate) -> parameters, moment.

    Follows SparseAdagradOp, caffe2/sgd/adagrad_op.h, PyTorch 1.8.1.
    """
    _check(param, indices, grad)
    rate, by_row = learning_rate_of(lr), rule.by_row
    n = param.shape[0]
    require(
        moment.numel() == (n if by_row else param.numel()),
        f"there is one moment per {'row' if by_row else 'parameter'}",
        moment,
        param,
    )
    if _has_kernel(indices, param, moment, grad, lr):
        new = _writable(out, 0, param), _writable(out, 1, moment)
        _adagrad_by_kernel(*new, indices, grad, lr, rule)
        return new
    rounds = rounds_of_rows(param, indices, grad)
    new_param, new_moment = _writable(out, 0, param), _writable(out, 1, moment)
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

    __slots__ = ("beta1", "beta2", "by_row", "epsilon", "rectified")
    takes = "float beta1, float beta2, float epsilon, bool enableRAdam"

    def __init__(self, arguments: Arguments) -> None:
        self.beta1 = single(arguments.single("beta1", 0.9))
        self.beta2 = single(arguments.single("beta2", 0.999))
        self.epsilon = single(arguments.single("epsilon", 1e-5))
        self.rectified = bool(arguments.single("enableRAdam", False))
        self.by_row = arguments.type.startswith("RowWise")

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> AdamRule:
        """Return the rule that arguments describe."""
        return cls(arguments)

    def scale(self, iteration: Tensor) -> tuple[float, bool]:
        """Return the factor of the steps, and whether they are divided by the deviation (RAdam)."""
        t = iteration.view(-1)[0].item() + 1
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


@recordable
def _adam_by_kernel(
    param: Tensor,
    first: Tensor,
    second: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    iteration: Tensor,
    steps: Tensor | None,
    rule: AdamRule,
) -> tuple[Tensor, Tensor, Tensor]:
    rows, n = param.shape[0], indices.numel()
    width = param.numel() // max(rows, 1)
    done = sparse_kernels.adam(
        address_of(param, rows * width),
        address_of(first, rows * width),
        address_of(second, rows if rule.by_row else rows * width),
        indices.data_ptr(),
        indices.dtype is torch.int64,
        address_of(grad, n * width),
        lr.data_ptr(),
        0 if steps is None else address_of(steps, n * width),
        *(n, rows, width, rule.beta1, rule.beta2, rule.epsilon),
        *rule.scale(iteration),
        rule.by_row,
    )
    if not done:
        require_range("rows", indices, rows)
    return param, first, second


_ADAM = ("param", "moment_1", "moment_2", "grad", "lr")


@_on_rows("SparseAdam", *_ADAM, iterates=True, inplace="0>0!,1>1!,2>2!", outputs="3-4")
@_on_rows("RowWiseSparseAdam", *_ADAM, iterates=True, inplace="0>0!,1>1!,2>2!", outputs="3-4")
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
    _check(param, indices, grad)
    rate, by_row, n = learning_rate_of(lr), rule.by_row, param.shape[0]
    require(
        moment_1.numel() == param.numel() and moment_2.numel() == (n if by_row else param.numel()),
        "the moments have the sizes of the parameters",
        *(moment_1, moment_2, param),
    )
    inputs = param, moment_1, moment_2
    if _has_kernel(indices, *inputs, grad, lr):
        made = [_writable(out, o, one) for o, one in enumerate(inputs)]
        steps = [torch.empty_like(grad)] if outputs == 4 else []
        _adam_by_kernel(*made, indices, grad, lr, iteration, steps[0] if steps else None, rule)
        return (*made, *steps)
    factor, divides = rule.scale(iteration)
    rounds = rounds_of_rows(param, indices, grad)
    made = [_writable(out, o, one) for o, one in enumerate(inputs)]
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


@_on_rows(
    "SparseAdadelta",
    *("param", "moment", "moment_delta", "grad", "lr"),
    inplace="0>0!,1>1!,2>2!",
)
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
) -> tuple[Tensor, Tensor, Tensor]:
    """(parameters, squares of gradients, squares of steps, rows, gradient, rate)."""
    require(0 < decay < 1, "decay is between 0 and 1", decay)
    rate = learning_rate_of(lr)
    rounds = rounds_of_rows(param, indices, grad)
    made = [_writable(out, o, one) for o, one in enumerate((param, moment, moment_delta))]
    w, h, d = (_matrix(one, param.shape[0]) for one in made)
    for rows, _, g in rounds:
        w[rows], h[rows], d[rows] = adadelta_step(
            w[rows], h[rows], d[rows], g, rate, epsilon, decay
        )
    return made[0], made[1], made[2]


@_on_rows("SparseFtrl", "var", "n_z", "grad", "alpha", inplace="0>0!,1>1!")
def sparse_ftrl(
    var: Tensor,
    n_z: Tensor,
    indices: Tensor,
    grad: Tensor,
    alpha: Tensor | None = None,
    *,
    settings: FtrlSettings,
    out: Out = None,
) -> tuple[Tensor, Tensor]:
    """(parameters, pairs of n and z, rows, gradient, optionally alpha) -> parameters, pairs."""
    rounds = rounds_of_rows(var, indices, grad)
    settings.inverse(alpha)  # raises before anything is written
    new_var, new_pairs = _writable(out, 0, var), _writable(out, 1, n_z)
    params = _matrix(new_var, var.shape[0])
    pairs = new_pairs.view(*params.shape, 2)
    for rows, _, g in rounds:
        n, z = pairs[rows].unbind(2)
        params[rows], n, z = ftrl_step(params[rows], n, z, g, alpha, settings)
        pairs[rows] = torch.stack([n, z], 2)
    return new_var, new_pairs


@_on_rows("SparseWngrad", *_ADAGRAD, inplace="0>0!,1>1!")
def sparse_wngrad(
    param: Tensor,
    moment: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    *,
    epsilon: float = 1e-5,
    out: Out = None,
) -> tuple[Tensor, Tensor]:
    """(parameters, b, rows, gradient, rate) -> parameters, b."""
    rate = learning_rate_of(lr) / (moment.view(()) + epsilon)
    rounds = rounds_of_rows(param, indices, grad)
    new_param, new_moment = _writable(out, 0, param), _writable(out, 1, moment)
    params = _matrix(new_param, param.shape[0])
    for rows, _, part in rounds:
        params[rows] += rate * part
    if rounds:
        # Without epsilon, unlike the operator on whole tensors.
        new_moment.add_(grad.square().sum() / new_moment)
    return new_param, new_moment


@_on_rows(
    "SparseStorm",
    *("param", "moment", "grad_sq_sum", "grad", "lr"),
    inplace="0>0!,1>1!,2>2!",
)
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
) -> tuple[Tensor, Tensor, Tensor]:
    """(parameters, moment, sum of squares, gradient, rows, rate) -> the first three."""
    rounds = rounds_of_rows(param, indices, grad)
    rate, alpha, total = storm_rate(grad_sq_sum, grad, learning_rate_of(lr), momentum, beta)
    made = [_writable(out, o, one) for o, one in enumerate((param, moment, grad_sq_sum))]
    params, moments = (_matrix(one, param.shape[0]) for one in made[:2])
    for rows, _, g in rounds:
        m = g + (1 - alpha) * (moments[rows] - g)
        moments[rows] = m
        params[rows] += rate * m
    if rounds:
        made[2].copy_(total)
    return made[0], made[1], made[2]
