# SPDX-License-Identifier: Apache-2.0
"""Steps of recurrent networks, LSTM and GRU, and their gradients.

States are (1, N, D); gates are (1, N, 4 D) or (1, N, 3 D), before their sigmoids. Sequences that
have ended at step t keep their state, or reset it to 0 with the argument `drop_states`.
"""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["GRUUnit", "LSTMUnit"]


class Step(FloatOperator):
    """The base class of the steps and their gradients.

    Arguments: `sequence_lengths` (True): there is an input (N) of them; `drop_states` (False).
    """

    gates = 4

    def continues(self, lengths: int, state: Tensor) -> tuple[Tensor, int]:
        """Return which sequences continue, (N, 1), and the input after the step number."""
        n = state.shape[-2]
        place = lengths
        length = None
        if self.GetSingleArgument("sequence_lengths", True):
            length = self.x(place, INT32)
            self.enforce(length.numel() == n, "there is one length per sequence", length, state)
            place += 1
        t = int(self.x(place, INT32).view(-1)[0])
        if length is None:
            return torch.ones(n, 1, dtype=torch.bool), place + 1
        return (t < length).view(n, 1), place + 1

    def parts(self, place: int, state: Tensor) -> tuple[Tensor, ...]:
        """Return the gates, each (N, D)."""
        x = self.x(place)
        shaped = state.dim() == x.dim() == 3 and state.shape[0] == x.shape[0] == 1
        self.enforce(shaped, "states have sizes (1, N, D)", state, x)
        self.enforce(
            x.numel() == self.gates * state.numel(),
            f"there are {self.gates} gates per state",
            x,
            state,
        )
        found: tuple[Tensor, ...] = x.view(state.shape[1], self.gates, state.shape[2]).unbind(1)
        return found

    def final_state(self, state: Tensor) -> Tensor:
        """Return the state of a sequence that has ended."""
        return torch.zeros_like(state) if self.GetSingleArgument("drop_states", False) else state


@register_operator("LSTMUnit")
class LSTMUnit(Step):
    """(hidden, cell, gates, optionally lengths, step) -> hidden, cell; `forget_bias` (0).

    The gates are input, forget, output and candidate.
    Follows LSTMUnitOp, caffe2/operators/lstm_unit_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        hidden, cell = self.x(0), self.x(1)
        i, f, o, g = self.parts(2, cell)
        continues, _ = self.continues(3, cell)
        old_h, old_c = hidden.view(i.shape), cell.view(i.shape)
        keep = torch.sigmoid(f + self.GetSingleArgument("forget_bias", 0.0))
        new_c = keep * old_c + torch.sigmoid(i) * torch.tanh(g)
        new_h = torch.sigmoid(o) * torch.tanh(new_c)
        self.put(0, torch.where(continues, new_h, self.final_state(old_h)).view(cell.shape))
        self.put(1, torch.where(continues, new_c, self.final_state(old_c)).view(cell.shape))


@register_operator("LSTMUnitGradient")
class LSTMUnitGradient(Step):
    """The gradients of hidden, cell and gates.

    Inputs: those of LSTMUnit, new hidden, new cell, and the gradients of both.
    """

    def RunOnDevice(self) -> None:
        cell = self.x(1)
        i, f, o, g = self.parts(2, cell)
        continues, place = self.continues(3, cell)
        old, new = cell.view(i.shape), self.x(place + 1).view(i.shape)
        dh, dc = (self.x(place + k).view(i.shape) for k in (2, 3))
        i, g, o = torch.sigmoid(i), torch.tanh(g), torch.sigmoid(o)
        f = torch.sigmoid(f + self.GetSingleArgument("forget_bias", 0.0))
        tanh_c = torch.tanh(new)
        inner = dh * o * (1 - tanh_c * tanh_c) + dc
        slopes = [
            inner * g * i * (1 - i),
            inner * old * f * (1 - f),
            dh * tanh_c * o * (1 - o),
            inner * i * (1 - g * g),
        ]
        zero = dh.new_zeros(())
        made = torch.stack([torch.where(continues, one, zero) for one in slopes], 1)
        self.put(0, torch.where(continues, zero, self.final_state(dh)).view(cell.shape))
        self.put(1, torch.where(continues, inner * f, self.final_state(dc)).view(cell.shape))
        self.put(2, made.view(self.x(2).shape))


@register_operator("GRUUnit")
class GRUUnit(Step):
    """(hidden, gates, optionally lengths, step) -> hidden.

    The gates are reset, update and candidate; reset is already applied.
    Follows GRUUnitOp, caffe2/operators/gru_unit_op.h, PyTorch 1.8.1.
    """

    gates = 3

    def RunOnDevice(self) -> None:
        hidden = self.x(0)
        _, update, output = self.parts(1, hidden)
        continues, _ = self.continues(2, hidden)
        old, keep = hidden.view(update.shape), torch.sigmoid(update)
        new = old * keep + torch.tanh(output) * (1 - keep)
        self.put(0, torch.where(continues, new, self.final_state(old)).view(hidden.shape))


@register_operator("GRUUnitGradient")
class GRUUnitGradient(Step):
    """(hidden, gates, optionally lengths, step, new hidden, its gradient) -> dhidden, dgates."""

    gates = 3

    def RunOnDevice(self) -> None:
        hidden = self.x(0)
        _, update, output = self.parts(1, hidden)
        continues, place = self.continues(2, hidden)
        old, dh = hidden.view(update.shape), self.x(place + 1).view(update.shape)
        u, o = torch.sigmoid(update), torch.tanh(output)
        slopes = [
            torch.zeros_like(dh),
            dh * (old - o) * u * (1 - u),
            dh * (1 - u) * (1 - o * o),
        ]
        zero = dh.new_zeros(())
        made = torch.stack([torch.where(continues, one, zero) for one in slopes], 1)
        self.put(0, torch.where(continues, dh * u, self.final_state(dh)).view(hidden.shape))
        self.put(1, made.view(self.x(1).shape))
