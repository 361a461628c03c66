# SPDX-License-Identifier: Apache-2.0
"""Steps of recurrent networks, LSTM and GRU, and their gradients; LSTM of several layers.

States are (1, N, D); gates are (1, N, 4 D) or (1, N, 3 D), before their sigmoids. Sequences that
have ended at step t keep their state, or reset it to 0 with the argument `drop_states`. Their
lengths are an input with the argument `sequence_lengths` (True); without, it is left out.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.gradients.patterns import by_argument
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_few, takes_kernels
from bridge.caffe2.operators.layers import layer_kernels


def _split(
    following: tuple[Tensor, ...], state: Tensor, sequence_lengths: bool, floats: int
) -> tuple[Tensor | None, Tensor, tuple[Tensor, ...]]:
    """Return the lengths, if there are any, the number of the step, and the inputs after it.

    following: optionally lengths, the step number, and `floats` inputs of float32.
    """
    n = state.shape[-2]
    own = 2 if sequence_lengths else 1
    fits = len(following) >= own + floats
    require(fits, "there are the inputs that sequence_lengths implies", len(following))
    for one in following[:own]:
        require(one.dtype == torch.int32, "lengths and the step are int32", one.dtype)
    for one in following[own : own + floats]:
        require(one.dtype == torch.float32, "states and gradients are float32", one.dtype)
    t, last = following[own - 1], following[own:]
    if not sequence_lengths:
        return None, t, last
    length = following[0]
    require(length.numel() == n, "there is one length per sequence", length, state)
    return length, t, last


def _continues(length: Tensor | None, t: Tensor, n: int) -> Tensor:
    """Return which sequences continue, (N, 1)."""
    t = t.view(-1)[:1]
    if length is None:
        return torch.ones_like(t, dtype=torch.bool).expand(n).view(n, 1)
    return (t < length.view(-1)).view(n, 1)


def _check(gates: Tensor, state: Tensor, count: int) -> None:
    shaped = state.dim() == gates.dim() == 3 and state.shape[0] == gates.shape[0] == 1
    require(shaped, "states have sizes (1, N, D)", state, gates)
    require(
        gates.numel() == count * state.numel(), f"there are {count} gates per state", gates, state
    )


def _parts(gates: Tensor, state: Tensor, count: int) -> tuple[Tensor, ...]:
    """Return the gates, each (N, D)."""
    return tuple(gates.view(state.shape[1], count, state.shape[2]).unbind(1))


def _chosen(continues: Tensor, new: Tensor, old: Tensor, drop_states: bool) -> Tensor:
    """Return the new state, or that of a sequence that has ended."""
    return torch.where(continues, new, old.new_zeros(()) if drop_states else old)


def _gathered(continues: Tensor, slopes: list[Tensor], like: Tensor) -> Tensor:
    """Return the gradients of the gates, 0 for sequences that have ended."""
    zero = like.new_zeros(())
    made = torch.stack([torch.where(continues, one, zero) for one in slopes], 1)
    return made.view(like.shape)


def _takes_kernel(out: Out, floats: tuple[Tensor, ...], lengths: Tensor | None, t: Tensor) -> bool:
    """Return whether a kernel makes the step: there are few states, and it may be called.

    In the first run, too, which has no buffers: the last bits are not those of torch's functions.
    """
    ints = [t] if lengths is None else [t, lengths]
    return (
        takes_few(*(out or ()), *floats)
        and t.numel() == 1
        and takes_kernels(*ints, dtype=torch.int32)
    )


_TYPES = {"lengths": INT32, "following": None}


@operator(
    "LSTMUnit",
    inputs="4-5",
    types=_TYPES,
    gradient=by_argument(
        "sequence_lengths",
        1,
        "$Gradient i0 i1 i2 i3 i4 o0 o1 g0 g1 > 0 1 2",
        "$Gradient i0 i1 i2 i3 o0 o1 g0 g1 > 0 1 2",
    ),
)
def lstm_unit(
    hidden: Tensor,
    cell: Tensor,
    gates: Tensor,
    lengths: Tensor,
    *following: Tensor,
    sequence_lengths: bool = True,
    drop_states: bool = False,
    forget_bias: float = 0.0,
    out: Out = None,
) -> tuple[Tensor, Tensor]:
    """(hidden, cell, gates, optionally lengths, step) -> hidden, cell.

    The gates are input, forget, output and candidate.
    Follows LSTMUnitOp, caffe2/operators/lstm_unit_op.h, PyTorch 1.8.1.
    """
    _check(gates, cell, 4)
    length, t, _ = _split((lengths, *following), cell, sequence_lengths, 0)
    if _takes_kernel(out, (hidden, cell, gates), length, t):
        states = (hidden, cell, gates, length, t, *cell.shape[1:])
        new = out or [torch.empty_like(cell) for _ in range(2)]
        run_kernel(layer_kernels.lstm_step, *new, *states, drop_states, forget_bias)
        return tuple(new)
    continues = _continues(length, t, cell.shape[1])
    i, f, o, g = _parts(gates, cell, 4)
    old_h, old_c = hidden.view(i.shape), cell.view(i.shape)
    new_c = torch.sigmoid(f + forget_bias) * old_c + torch.sigmoid(i) * torch.tanh(g)
    new_h = torch.sigmoid(o) * torch.tanh(new_c)
    return (
        _chosen(continues, new_h, old_h, drop_states).view(cell.shape),
        _chosen(continues, new_c, old_c, drop_states).view(cell.shape),
    )


@operator("LSTMUnitGradient", inputs="8-9", types=_TYPES, defaults=lstm_unit)
def lstm_unit_gradient(
    hidden: Tensor,
    cell: Tensor,
    gates: Tensor,
    lengths: Tensor,
    *following: Tensor,
    sequence_lengths: bool,
    drop_states: bool,
    forget_bias: float,
    out: Out = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of hidden, cell and gates.

    Inputs: those of LSTMUnit, new hidden, new cell, and the gradients of both.
    """
    _check(gates, cell, 4)
    length, t, last = _split((lengths, *following), cell, sequence_lengths, 4)
    if _takes_kernel(out, (cell, gates, *last[1:4]), length, t):
        states = (cell, gates, length, t, *last[1:4], *cell.shape[1:])
        slopes = out or [torch.empty_like(one) for one in (hidden, cell, gates)]
        run_kernel(layer_kernels.lstm_step_gradient, *slopes, *states, drop_states, forget_bias)
        return tuple(slopes)
    continues = _continues(length, t, cell.shape[1])
    i, f, o, g = _parts(gates, cell, 4)
    old = cell.view(i.shape)
    new, dh, dc = (one.view(i.shape) for one in last[1:4])
    i, g, o = torch.sigmoid(i), torch.tanh(g), torch.sigmoid(o)
    f = torch.sigmoid(f + forget_bias)
    tanh_c = torch.tanh(new)
    inner = dh * o * (1 - tanh_c * tanh_c) + dc
    slopes = [
        inner * g * i * (1 - i),
        inner * old * f * (1 - f),
        dh * tanh_c * o * (1 - o),
        inner * i * (1 - g * g),
    ]
    dhidden = _chosen(continues, torch.zeros_like(dh), dh, drop_states)
    dcell = _chosen(continues, inner * f, dc, drop_states)
    dgates = _gathered(continues, slopes, gates)
    return dhidden.view(cell.shape), dcell.view(cell.shape), dgates


@operator(
    "GRUUnit",
    inputs="3-4",
    types=_TYPES,
    gradient=by_argument(
        "sequence_lengths", 1, "$Gradient i0 i1 i2 i3 o0 g0 > 0 1", "$Gradient i0 i1 i2 o0 g0 > 0 1"
    ),
)
def gru_unit(
    hidden: Tensor,
    gates: Tensor,
    lengths: Tensor,
    *following: Tensor,
    sequence_lengths: bool = True,
    drop_states: bool = False,
) -> Tensor:
    """(hidden, gates, optionally lengths, step) -> hidden.

    The gates are reset, update and candidate; reset is already applied.
    Follows GRUUnitOp, caffe2/operators/gru_unit_op.h, PyTorch 1.8.1.
    """
    _check(gates, hidden, 3)
    length, t, _ = _split((lengths, *following), hidden, sequence_lengths, 0)
    continues = _continues(length, t, hidden.shape[1])
    _, update, output = _parts(gates, hidden, 3)
    old, keep = hidden.view(update.shape), torch.sigmoid(update)
    new = old * keep + torch.tanh(output) * (1 - keep)
    return _chosen(continues, new, old, drop_states).view(hidden.shape)


@operator("GRUUnitGradient", inputs="5-6", types=_TYPES, defaults=gru_unit)
def gru_unit_gradient(
    hidden: Tensor,
    gates: Tensor,
    lengths: Tensor,
    *following: Tensor,
    sequence_lengths: bool,
    drop_states: bool,
) -> tuple[Tensor, Tensor]:
    """(hidden, gates, optionally lengths, step, new hidden, its gradient) -> dhidden, dgates."""
    _check(gates, hidden, 3)
    length, t, last = _split((lengths, *following), hidden, sequence_lengths, 2)
    continues = _continues(length, t, hidden.shape[1])
    _, update, output = _parts(gates, hidden, 3)
    old, dh = hidden.view(update.shape), last[1].view(update.shape)
    u, o = torch.sigmoid(update), torch.tanh(output)
    slopes = [torch.zeros_like(dh), dh * (old - o) * u * (1 - u), dh * (1 - u) * (1 - o * o)]
    dhidden = _chosen(continues, dh * u, dh, drop_states)
    return dhidden.view(hidden.shape), _gathered(continues, slopes, gates)


@operator("InferenceLSTM", inputs="1-*", gradient="none", effects=("values",))
def inference_lstm(
    *xs: Tensor,
    num_layers: int = 1,
    has_biases: bool = True,
    batch_first: bool = False,
    bidirectional: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs of the last layer, and the last hidden and cell states of all layers.

    Inputs: the sequence (T, N, D), with `batch_first` (N, T, D); the hidden and the cell states
    (layers, N, H); for each layer, and with `bidirectional` each direction, the weights (4 H, D)
    and (4 H, H), and with `has_biases` two biases (4 H). Gates: input, forget, candidate, output.
    """
    wanted = num_layers * (1 + bidirectional) * (4 if has_biases else 2)
    fits = len(xs) == 3 + wanted and xs[0].dim() == 3
    require(fits, f"there are a sequence, two states and {wanted} weights", *xs)
    states = xs[1], xs[2]
    # torch.lstm compares neither sizes nor types, and reads and writes outside of its memory.
    directions = 1 + bidirectional
    batch, hidden = xs[0].size(0 if batch_first else 1), xs[1].size(-1) if xs[1].dim() else 0
    sizes = [[num_layers * directions, batch, hidden]] * 2
    for layer in range(num_layers):
        depth = hidden * directions if layer else xs[0].size(2)
        weights = [[4 * hidden, depth], [4 * hidden, hidden]]
        biases = [[4 * hidden]] * 2 if has_biases else []
        sizes += (weights + biases) * directions
    require(
        [list(x.shape) for x in xs[1:]] == sizes,
        f"for a sequence of {list(xs[0].shape)}, states and weights have the sizes {sizes}",
        *xs[1:],
    )
    require(len({x.dtype for x in xs}) == 1, "all inputs have one element type", *xs)
    found: tuple[Tensor, Tensor, Tensor] = torch.lstm(
        xs[0], states, list(xs[3:]), has_biases, num_layers, 0.0, False, bidirectional, batch_first
    )
    return found
