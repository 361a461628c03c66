# SPDX-License-Identifier: Apache-2.0
"""Types that are registered and refused say why."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize(
    ("op_type", "inputs", "why"),
    [("Int8GenQuantParams", ["x", "x"], "Int8QuantScheme"), ("Onnxifi", ["x"], "ONNXIFI")],
)
def test_refused_types_say_why(op_type, inputs, why):
    assert core.IsOperator(op_type)
    workspace.FeedBlob("x", np.ones(3, np.float32))
    with pytest.raises(EnforceNotMet, match=why):
        workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, ["y"]))
    assert not workspace.HasBlob("y") or not workspace.FetchBlob("y").size
