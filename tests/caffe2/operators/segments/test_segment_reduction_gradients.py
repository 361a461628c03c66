# SPDX-License-Identifier: Apache-2.0
"""Gradients of segments by ranges: what counts of the sizes."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

EXPECTED = {
    "Sum": [1, 2, 1, 2, 1, 2],
    "Mean": [1 / 3, 2 / 3] * 3,
    "Max": [0, 0, 0, 0, 1, 2],
    "LogSumExp": np.outer(np.exp([-4, -2, 0]), [1, 2]).reshape(-1),
    "LogMeanExp": np.outer(np.exp([-4, -2, 0]), [1, 2]).reshape(-1) / 3,
}


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("sizes", [(1, 2), (1, 1, 2)])
def test_rows_have_the_sizes_of_the_gradient(kind: str, sizes: tuple[int, ...]) -> None:
    workspace.FeedBlob("x", np.arange(6, dtype=np.float32).reshape(3, 2))
    workspace.FeedBlob("ids", np.zeros(3, np.int32))
    workspace.FeedBlob("y", np.array([[4, 5]], np.float32))
    workspace.FeedBlob("dy", np.array([1, 2], np.float32).reshape(sizes))
    workspace.RunOperatorOnce(
        core.CreateOperator(f"SortedSegmentRange{kind}Gradient", ["x", "y", "dy", "ids"], ["dx"])
    )
    found = workspace.FetchBlob("dx")
    assert found.shape == (3, *sizes[1:])
    np.testing.assert_allclose(found.reshape(-1), EXPECTED[kind], rtol=1e-6)


@pytest.mark.parametrize("kind", ["Sum", "Mean"])
def test_rows_have_the_gradients_of_their_segments_in_each_run(kind: str) -> None:
    net = core.Net("of_rows")
    op_type = f"SparseLengthsIndicesInGradient{kind}Gradient"
    net.Proto().op.append(core.CreateOperator(op_type, ["dy", "lengths", "i"], ["dx"]))
    workspace.CreateNet(net, input_blobs=["dy", "lengths", "i"])
    dy = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    workspace.FeedBlob("dy", dy)
    for lengths in ([1, 0, 3], [1, 0, 3], [1, 0, 3], [0, 4, 0], [4, 4, 1], [2, 1, 1]):
        workspace.FeedBlob("lengths", np.array(lengths, np.int32))
        workspace.FeedBlob("i", np.zeros(sum(lengths), np.int64))
        workspace.RunNet(net)
        over = np.maximum(lengths, 1)[:, None] if kind == "Mean" else 1
        expected = np.repeat(dy / over, lengths, 0)
        np.testing.assert_allclose(workspace.FetchBlob("dx"), expected, rtol=1e-6)
    workspace.FeedBlob("lengths", np.array([5, -1, 0], np.int32))
    with pytest.raises(EnforceNotMet, match="negative"):
        workspace.RunNet(net)
