# SPDX-License-Identifier: Apache-2.0
"""Limits of each gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import brew, core, model_helper, workspace
from bridge.caffe2.optimizer.gradient_clipping import GradientClipping

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def gradients(*args: Any, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any], core.Net]:
    """Return gradients without and with clipping, and the net."""
    found = []
    for clipped in (False, True):
        model = model_helper.ModelHelper(name="clipped")
        brew.fc(model, "x", "y", 3, 2, weight_init=("ConstantFill", {"value": 0.5}))
        grad_map = model.AddGradientOperators([model.net.SumElements("y", "loss")])
        if clipped:
            GradientClipping(*args, **kwargs)(model.net, grad_map=grad_map)
        workspace.FeedBlob("x", np.array([[1.0, 2.0, 2.0]], np.float32))
        workspace.RunNetOnce(model.param_init_net)
        workspace.RunNetOnce(model.net)
        names = ("y_w", "y_b")
        found.append({name: workspace.FetchBlob(grad_map[name]) for name in names})
    return found[0], found[1], model.net


def test_clipping_by_norm_scales_to_the_threshold() -> None:
    before, after, _ = gradients("by_norm", clip_threshold=1.0, blobs_to_include=["y_w"])
    norm = np.linalg.norm(before["y_w"])
    np.testing.assert_allclose(after["y_w"], before["y_w"] / norm, rtol=1e-5)
    assert (after["y_b"] == before["y_b"]).all()


def test_clipping_by_l1_norm_scales_to_the_threshold() -> None:
    before, after, _ = gradients(
        "by_norm", "l1_norm", clip_threshold=1.0, blobs_to_exclude=["y_b", "y", "x"]
    )
    np.testing.assert_allclose(after["y_w"], before["y_w"] / before["y_w"].sum(), rtol=1e-5)
    assert (after["y_b"] == before["y_b"]).all()


def test_clipping_by_the_norm_of_the_parameter_scales_to_its_part() -> None:
    before, after, net = gradients(
        "by_norm",
        clip_threshold=0.5,
        use_parameter_norm=True,
        compute_norm_ratio=True,
        blobs_to_include=["y_w"],
    )
    limit = 0.5 * np.linalg.norm(np.full((2, 3), 0.5))
    scale = limit / np.linalg.norm(before["y_w"])
    np.testing.assert_allclose(after["y_w"], before["y_w"] * scale, rtol=1e-5)
    (ratio,) = (op.output[0] for op in net.Proto().op if op.type == "Div")
    np.testing.assert_allclose(workspace.FetchBlob(ratio), 0.5 / scale, rtol=1e-5)


def test_clipping_by_value_limits_each_element() -> None:
    before, after, _ = gradients("by_value", clip_max=1.5, clip_min=-1.5)
    assert (after["y_w"] == np.minimum(before["y_w"], 1.5)).all()


def test_sparse_gradients_are_not_clipped() -> None:
    net = core.Net("sparse")
    slices = core.GradientSlice("indices", "values")
    GradientClipping("by_value")(net, grad_map={"w": slices})
    assert len(net.Proto().op) == 0


def test_unknown_methods_norms_and_parameters_are_refused() -> None:
    for wrong in (("by_magic",), ("by_norm", "l3_norm")):
        with pytest.raises(EnforceNotMet, match="has not been implemented"):
            GradientClipping(*wrong)
    with pytest.raises(EnforceNotMet, match="Pass grad_map"):
        GradientClipping("by_value")(core.Net("n"))
    with pytest.raises(EnforceNotMet, match="param w is not defined in net"):
        GradientClipping("by_value", blobs_to_include=["w"])(core.Net("n"), grad_map={"w": "g"})
