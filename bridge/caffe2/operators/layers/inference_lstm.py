# SPDX-License-Identifier: Apache-2.0
"""LSTM of several layers, for inference.

Follows caffe2/operators/inference_lstm_op.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import require


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
