# SPDX-License-Identifier: Apache-2.0
"""Models and the gradients of their parameters."""

from __future__ import annotations

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import brew, core, model_helper

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_model_knows_the_gradients_of_its_parameters() -> None:
    model = model_helper.ModelHelper(name="known")
    brew.fc(model, "x", "h", 4, 3)
    brew.fc(model, "x", "unused", 4, 3)
    with pytest.raises(EnforceNotMet, match="AddGradientOperators first"):
        model.GetOptimizationParamInfo()
    found = model.AddGradientOperators([model.net.AveragedLoss("h", "loss")])
    assert found is model.grad_map
    assert model.param_to_grad == {"h_w": "h_w_grad", "h_b": "h_b_grad"}
    infos = model.GetOptimizationParamInfo()
    assert [(one.name, one.shape, one.size, str(one.grad)) for one in infos] == [
        ("h_w", [3, 4], 12, "h_w_grad"),
        ("h_b", [3], 3, "h_b_grad"),
    ]
    assert model.get_param_info(model.params[0]) is infos[0]
    with pytest.raises(EnforceNotMet, match="twice"):
        model.AddGradientOperators(["loss"])


def test_a_model_may_skip_sparse_gradients() -> None:
    model = model_helper.ModelHelper(name="skips", skip_sparse_optim=True)
    table = model.param_init_net.XavierFill([], "table", shape=[5, 4])
    model.AddParameter(table)
    brew.fc(model, model.net.Gather([table, "ids"], "x"), "h", 4, 3)
    model.AddGradientOperators([model.net.AveragedLoss("h", "loss")])
    assert isinstance(model.param_to_grad[table], core.GradientSlice)
    assert [one.name for one in model.GetOptimizationParamInfo()] == ["h_w", "h_b"]
