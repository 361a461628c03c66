# SPDX-License-Identifier: Apache-2.0
"""SparseAdagrad together with the gradient of a look-up: one gradient per segment of rows.

Follows adagrad_fused.h and rowwise_adagrad_fused.h in caffe2/sgd, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Function, Out, operator
from bridge.caffe2.operators.base.checks import INT32, INTS, require
from bridge.caffe2.operators.base.rows_and_segments import (
    check_rows,
    positions_in_segments,
    segment_ids,
)
from bridge.caffe2.operators.training.sparse_optimizers import (
    AdagradRule,
    rounds_of_rows,
    sparse_adagrad,
)


class FusedRule(AdagradRule):
    """Arguments of SparseAdagrad; by the type, `is_mean`, and `in_turn`.

    `is_mean`: the gradient is that of the mean. `in_turn`: gradients of weights are those of rows
    that are updated already where they occur before, as the types with Approx have it.
    """

    __slots__ = ("in_turn", "is_mean")

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.is_mean = "Mean" in arguments.type
        self.in_turn = arguments.type.endswith("Approx")


def _fused(*names: str, weighted: bool) -> Callable[[Function], Function]:
    """Return a decorator that declares these types, each also with RowWise and with Approx."""

    def declare(function: Function) -> Function:
        for name in names:
            for rows in ("", "RowWise"):
                for approximate in ("", "Approx"):
                    operator(
                        f"{rows}SparseAdagradFusedWithSparseLengths{name}Gradient{approximate}",
                        inplace="0>0!,1>1!",
                        types={"indices": INTS, "lengths": INT32},
                        outputs=3 if weighted else 2,
                        effects=("values",),
                        gradient="undefined",
                    )(function)
        return function

    return declare


def _by_row(indices: Tensor, grad: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient of each row as a matrix, and its segment."""
    require(indices.dim() == 1 and lengths.dim() == 1, "indices and lengths have one dimension")
    fits = grad.dim() > 0 and grad.shape[0] == lengths.shape[0]
    require(fits, "there is one gradient per segment", grad, lengths)
    ids = segment_ids(lengths, indices.shape[0])
    return grad.reshape(lengths.shape[0], math.prod(grad.shape[1:])).index_select(0, ids), ids


@_fused("Sum", "Mean", weighted=False)
def fused_with_sum(
    param: Tensor,
    moment: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    lengths: Tensor,
    *,
    rule: FusedRule,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment, rows, gradients of segments, rate, lengths) -> parameters, moment."""
    grads, ids = _by_row(indices, grad, lengths)
    if rule.is_mean:
        grads = grads / lengths[ids].unsqueeze(1)
    return sparse_adagrad(param, moment, indices, grads, lr, rule=rule, out=out)


@_fused("WeightedSum", weighted=True)
def fused_with_weighted_sum(
    param: Tensor,
    moment: Tensor,
    aux: Tensor,
    indices: Tensor,
    grad: Tensor,
    lr: Tensor,
    lengths: Tensor,
    *,
    rule: FusedRule,
    out: Out = None,
) -> tuple[Tensor, ...]:
    """(parameters, moment, weights, rows, gradients of segments, rate, lengths).

    Returns parameters, moment, and the gradients of the weights. A row has the weight of its
    position in its segment, whatever the segment, as Caffe2 has it.
    """
    require(aux.shape == indices.shape, "there is one weight per row", aux, indices)
    grads, ids = _by_row(indices, grad, lengths)
    check_rows(indices, param.shape[0])
    weighted = grads * aux[positions_in_segments(lengths, ids)].unsqueeze(1)
    rows = param.reshape(param.shape[0], math.prod(param.shape[1:]))
    of_weights = (rows[indices] * grads).sum(1)
    if not rule.in_turn:
        made = sparse_adagrad(param, moment, indices, weighted, lr, rule=rule, out=out)
        return *made, of_weights
    made = (param.clone(), moment.clone()) if out is None else (out[0], out[1])
    rows = made[0].view(rows.shape)
    for flat, places, part in rounds_of_rows(param, indices, weighted):
        of_weights[places] = (rows[flat] * grads[places]).sum(1)
        sparse_adagrad(*made, flat, part.contiguous(), lr, rule=rule, out=made)
    return *made, of_weights
