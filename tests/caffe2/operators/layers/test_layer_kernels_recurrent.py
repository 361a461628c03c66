# SPDX-License-Identifier: Apache-2.0
"""Steps of an LSTM by a kernel are those that torch's functions make, in each run."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.layers.recurrent import lstm_unit, lstm_unit_gradient

pytestmark = pytest.mark.usefixtures("fresh_workspace")

N, D = 3, 5


def states(names: list[str]) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(1, N, 4 * D if name == "gates" else D, generator=generator) * 2
        for name in names
    }


@pytest.mark.parametrize("drop_states", [False, True])
@pytest.mark.parametrize("has_lengths", [False, True])
@pytest.mark.parametrize("gradient", [False, True])
def test_steps_of_sequences_that_end(drop_states: bool, has_lengths: bool, gradient: bool) -> None:
    after = ["new_h", "new_c", "dh", "dc"] if gradient else []
    given = states(["hidden", "cell", "gates", *after])
    if has_lengths:
        given["lengths"] = torch.tensor([1, 3, 2], dtype=torch.int32)
    given["t"] = torch.zeros(1, dtype=torch.int32)
    inputs = ["hidden", "cell", "gates", *["lengths"] * has_lengths, "t", *after]
    outputs = ["a", "b", "c"] if gradient else ["a", "b"]
    arguments = {"drop_states": drop_states, "forget_bias": 0.5}
    op_type = "LSTMUnitGradient" if gradient else "LSTMUnit"
    made = core.CreateOperator(op_type, inputs, outputs, sequence_lengths=has_lengths, **arguments)
    net = core.Net("step")
    net.Proto().op.append(made)
    for name, tensor in given.items():
        workspace.FeedBlob(name, tensor.numpy())
    workspace.CreateNet(net)
    by_torch = lstm_unit_gradient if gradient else lstm_unit
    for t in (0, 0, 0, 1, 2, 3):
        given["t"][0] = t
        workspace.FeedBlob("t", np.array([t], np.int32))
        workspace.RunNet(net)
        expected = by_torch(
            *(given[name] for name in inputs), sequence_lengths=has_lengths, **arguments
        )
        for name, one in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(workspace.FetchBlob(name), one, rtol=1e-5, atol=1e-6)
