# SPDX-License-Identifier: Apache-2.0
"""Gradients of convolutions take a dY of the sizes of Y only: torch reads outside of others."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated

pytestmark = pytest.mark.usefixtures("fresh_workspace")


# The last sizes are those of Y.
@isolated
@pytest.mark.parametrize("kind", ["ConvGradient", "ConvTransposeGradient"])
@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_a_dy_of_other_sizes_than_y_is_refused(kind: str, order: str) -> None:
    side = 3 if kind == "ConvGradient" else 7
    shapes = [(1, 4), (0, 4), (2, 3), (2, 1), (2, 0)]
    planes = [(side - 1, side), (side, side + 1), (0, side), (side,), (side, side, 1), (1, 1)]
    wrong = [(*one, side, side) for one in shapes] + [(2, 4, *one) for one in planes]
    w = (4, 3, 3, 3) if kind == "ConvGradient" else (3, 4, 3, 3)
    for name, sizes in (("x", (2, 3, 5, 5)), ("w", w)):
        value = np.ones(sizes, np.float32)
        workspace.FeedBlob(name, value if order == "NCHW" else value.transpose(0, 2, 3, 1).copy())
    op = core.CreateOperator(kind, ["x", "w", "dy"], ["dw", "db", "dx"], kernel=3, order=order)
    for sizes in wrong:
        value = np.ones(sizes, np.float32)
        workspace.FeedBlob("dy", np.moveaxis(value, 1, -1).copy() if order == "NHWC" else value)
        with pytest.raises(EnforceNotMet, match="dY has the sizes of Y"):
            workspace.RunOperatorOnce(op)
        assert not workspace.HasBlob("dw")
    value = np.ones((2, 4, side, side), np.float32)
    workspace.FeedBlob("dy", np.moveaxis(value, 1, -1).copy() if order == "NHWC" else value)
    workspace.RunOperatorOnce(op)
    np.testing.assert_allclose(workspace.FetchBlob("db"), 2 * side * side)
