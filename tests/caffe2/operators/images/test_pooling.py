# SPDX-License-Identifier: Apache-2.0
"""Gradients of pooling by torch are those of Caffe2's operators, where maxima are equal, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

WINDOWS = [
    {"kernel": 3, "stride": 2, "pad": 1},
    {"kernel": 3, "stride": 2, "legacy_pad": 3},
    {"kernel": 2, "stride": 3},
    {"global_pooling": 1},
]


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
def test_gradients_of_pooling_agree_with_caffe2(
    op_type: str, order: str, windows: dict[str, Any]
) -> None:
    x = np.maximum(np.random.RandomState(0).randn(2, 7, 9, 8), 0).astype(np.float32)
    net = core.Net("pool")
    net.Proto().op.append(core.CreateOperator(op_type, ["x"], ["y"], order=order, **windows))
    given = torch.from_numpy(x.copy()).requires_grad_()
    y = caffe2.to_module(net, inputs=["x"], outputs=["y"])(given)
    dy = np.random.RandomState(1).randn(*y.shape).astype(np.float32)
    y.backward(torch.from_numpy(dy))
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("dy", dy)
    gradients = net.AddGradientOperators({"y": "dy"})
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(y.detach().numpy(), workspace.FetchBlob("y"), rtol=1e-5, atol=1e-6)
    assert given.grad is not None
    expected = workspace.FetchBlob(str(gradients["x"]))
    np.testing.assert_allclose(given.grad.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("op_type", ["MaxPoolGradient", "AveragePoolGradient", "LpPoolGradient"])
@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize(("y", "dy"), [(3, 2), (2, 9), (1, 1)])
def test_gradients_take_one_value_per_window(op_type: str, order: str, y: int, dy: int) -> None:
    for name, size in {"x": 4, "y": y, "dy": dy}.items():
        sizes = (1, size, size, 1) if order == "NHWC" else (1, 1, size, size)
        workspace.FeedBlob(name, np.ones(sizes, np.float32))
    op = core.CreateOperator(op_type, ["x", "y", "dy"], ["dx"], kernel=2, stride=2, order=order)
    with pytest.raises(EnforceNotMet, match=r"sizes \[1, 1, 2, 2\], a value per window"):
        workspace.RunOperatorOnce(op)
