# SPDX-License-Identifier: Apache-2.0
"""Functions that are linear by pieces, by a kernel, held against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

BOUNDS = np.float32([[-1, 0, 0.5, 2], [0, 1, 1, 3]])
SLOPES = np.float32([[1, -2, 3], [0.5, 7, -1]])
INTERCEPTS = np.float32([[0, 1, 2], [5, 3, 1]])


def expected(x: np.ndarray, c: int) -> np.ndarray:
    piece = np.clip(np.searchsorted(BOUNDS[c], x) - 1, 0, 2)
    return SLOPES[c][piece] * np.clip(x, BOUNDS[c][0], BOUNDS[c][-1]) + INTERCEPTS[c][piece]


@pytest.mark.parametrize("as_inputs", [False, True])
def test_each_column_follows_its_pieces_from_arguments_or_inputs(as_inputs: bool) -> None:
    lists = {"bounds": BOUNDS, "slopes": SLOPES, "intercepts": INTERCEPTS}
    x = np.linspace(-2, 4, 50, dtype=np.float32).reshape(25, 2)
    x[:4, 0] = [-1, 0, 0.5, 2]
    workspace.FeedBlob("x", x)
    inputs, args = ["x"], {}
    for name, value in lists.items():
        if as_inputs:
            workspace.FeedBlob(name, value.reshape(-1))
            inputs.append(name)
        else:
            args[name] = value.reshape(-1).tolist()
    net = core.Net("pieces")
    net.Proto().op.append(core.CreateOperator("PiecewiseLinearTransform", inputs, ["y"], **args))
    workspace.CreateNet(net, input_blobs=inputs)
    for _ in range(4):
        workspace.RunNet(net.Name())
        wanted = np.stack([expected(x[:, 0], 0), expected(x[:, 1], 1)], 1)
        np.testing.assert_allclose(workspace.FetchBlob("y"), wanted, rtol=1e-6)
    if as_inputs:
        workspace.FeedBlob("bounds", BOUNDS[:, ::-1].reshape(-1))
        with pytest.raises(RuntimeError, match="the bounds are sorted"):
            workspace.RunNet(net.Name())


@pytest.mark.parametrize("columns", [0, 1, 2])
def test_binary_gives_the_probabilities_of_both_classes(columns: int) -> None:
    x = np.linspace(-2, 4, 20, dtype=np.float32)
    workspace.FeedBlob("x", np.stack([x] * columns, 1) if columns else x)
    args = {"bounds": BOUNDS[0].tolist(), "slopes": SLOPES[0].tolist()}
    workspace.RunOperatorOnce(
        core.CreateOperator(
            "PiecewiseLinearTransform",
            ["x"],
            ["y"],
            binary=True,
            intercepts=INTERCEPTS[0].tolist(),
            **args,
        )
    )
    found = workspace.FetchBlob("y")
    wanted = expected(x, 0)
    if columns:
        np.testing.assert_allclose(found[:, -1], wanted, rtol=1e-6)
        if columns == 2:
            np.testing.assert_allclose(found[:, 0], 1 - wanted, rtol=1e-6)
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
