# SPDX-License-Identifier: Apache-2.0
"""Where an optimizer makes a step, and the rows that it updates, in rounds of different ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out
from bridge.caffe2.operators.base.checks import require, require_range
from bridge.caffe2.operators.base.cpu_kernels import run_kernel

# Different rows, their positions in the indices, and their gradients.
Round = tuple[Tensor, Tensor, Tensor]


def writable(out: Out, o: int, x: Tensor) -> Tensor:
    """Return the buffer of output `o`, which holds `x`, or a copy of `x`."""
    room: Tensor | None = None if out is None else out[o]
    if room is None:
        return x.clone()
    return room if room is x else room.copy_(x)


def stepped(
    kernel: Callable[..., Any], out: Out, states: tuple[Tensor, ...], *given: Any
) -> tuple[Tensor, ...]:
    """Return `states` after a step by a kernel, which takes them, and the rest, in place."""
    made = tuple(writable(out, o, one) for o, one in enumerate(states))
    run_kernel(kernel, *made, *given)
    return made


def row_width(param: Tensor, indices: Tensor, grad: Tensor) -> int:
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
    width = row_width(param, indices, grad)
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
