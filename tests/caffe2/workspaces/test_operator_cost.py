# SPDX-License-Identifier: Apache-2.0
"""GetOperatorCost counts as Caffe2 does."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_counts_equal_the_counts_of_caffe2() -> None:
    sizes = {"x": (2, 3, 8, 8), "w": (4, 3, 3, 3), "b": (4,), "a": (2, 5), "u": (4, 5)}
    for name, size in sizes.items():
        workspace.FeedBlob(name, np.zeros(size))

    def cost(kind: str, inputs: list[str], **arguments: object) -> tuple[int, int]:
        op = core.CreateOperator(kind, inputs, ["y"], **arguments)
        return workspace.GetOperatorCost(op.SerializeToString(), inputs)

    assert cost("Conv", ["x", "w", "b"], kernel=3) == (15552, 1152)
    assert cost("Conv2D", ["x", "w"], kernel=3) == (15552, 1152)
    assert cost("FC", ["a", "u", "b"]) == (88, 32)
    with pytest.raises(RuntimeError, match="not defined for Sigmoid"):
        cost("Sigmoid", ["a"])
    with pytest.raises(RuntimeError, match="no blob 'nothing'"):
        cost("Conv", ["nothing"], kernel=3)
