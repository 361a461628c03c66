# SPDX-License-Identifier: Apache-2.0
"""The operator Loop of ONNX."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def net_of(name, *operators):
    net = caffe2_pb2.NetDef(name=name)
    net.op.extend(core.CreateOperator(*one[:3], **dict(one[3:])) for one in operators)
    return net


@pytest.mark.parametrize("scopes", [{}, {"save_scopes": 1}, {"disable_scopes": 1}])
@pytest.mark.parametrize(("trips", "condition"), [(20, True), (3, True), (0, True), (5, False)])
def test_onnx_while_computes_fibonacci_numbers(trips, condition, scopes):
    body = net_of(
        "body",
        ("Add", ["first", "second"], ["third"]),
        ("ConstantFill", [], ["limit"], ("shape", [1]), ("value", 100.0)),
        ("LT", ["third", "limit"], ["go"]),
    )
    body.external_input.extend(["i", "cond", "first", "second"])
    body.external_output.extend(["go", "second", "third", "third"])
    workspace.FeedBlob("trips", np.array(trips, np.int64))
    workspace.FeedBlob("c", np.array(condition))
    for name in ("a", "b"):
        workspace.FeedBlob(name, np.array([1.0], np.float32))
    operator = core.CreateOperator(
        "ONNXWhile", ["trips", "c", "a", "b"], ["f", "s", "all"], body=body, has_cond=1,
        has_trip_count=1, **scopes,
    )  # fmt: skip
    for _ in range(2):
        workspace.RunOperatorOnce(operator)
        first, second, every = 1, 1, []
        while condition and len(every) < trips and (not every or every[-1] < 100):
            first, second = second, first + second
            every.append(second)
        assert workspace.FetchBlob("f") == [first]
        assert workspace.FetchBlob("s") == [second]
        assert workspace.FetchBlob("all").tolist() == every
