# SPDX-License-Identifier: Apache-2.0
"""The names that Caffe2 registers for engines."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_an_engine_with_the_same_results_runs_the_one_implementation():
    names = workspace.RegisteredOperators()
    assert {"Relu", "Conv_ENGINE_CUDNN", "Adagrad_ENGINE_SIMD", "FC_ENGINE_TENSORCORE"} <= {*names}
    assert sum("_ENGINE_" in name for name in names) >= 168
    assert core.IsOperatorWithEngine("MaxPool", "CUDNN")
    workspace.FeedBlob("x", np.array([-1.0, 2.0], np.float32))
    workspace.RunOperatorOnce(core.CreateOperator("Sigmoid", ["x"], ["y"], engine="CUDNN"))
    np.testing.assert_allclose(workspace.FetchBlob("y"), 1 / (1 + np.exp([1, -2])), rtol=1e-6)


@pytest.mark.parametrize(("op_type", "engine"), [("FC", "DNNLOWP_16"), ("Sum", "DNNLOWP_16")])
def test_an_engine_of_another_arithmetic_is_refused_by_name(op_type, engine):
    for name in ("x", "w", "b"):
        workspace.FeedBlob(name, np.ones((1, 1), np.float32))
    op = core.CreateOperator(op_type, ["x", "w", "b"], ["y"], engine=engine)
    with pytest.raises(EnforceNotMet, match=f"{op_type} of the engine {engine} is not available"):
        workspace.RunOperatorOnce(op)
