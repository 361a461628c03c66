# SPDX-License-Identifier: Apache-2.0
"""Transforms rewrite nets, and leave what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

C = workspace.C
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def transformed(name: str, net: core.Net) -> Any:
    data = C.run_transform(name, net.Proto().SerializeToString())
    return type(net.Proto()).FromString(data)


def conv(net: core.Net, x: str, y: str) -> None:
    net.Conv([x, "w", "b"], [y], kernel=3, pad=1, engine="NNPACK")


def feed() -> None:
    random = np.random.default_rng(0)
    for name, sizes in {"x": (1, 2, 5, 5), "w": (2, 2, 3, 3), "b": (2,)}.items():
        workspace.FeedBlob(name, random.standard_normal(sizes).astype(np.float32))


@pytest.mark.parametrize(
    "relus",
    [
        [("y", "z")],
        [("y", "y")],
        [("y", "x")],
        [("y", "x"), ("x2", "x3")],
        [("y", "y"), ("x2", "x2")],
    ],
)
def test_relu_becomes_part_of_a_convolution(relus: list[tuple[str, str]]) -> None:
    net = core.Net("fused")
    before = "x"
    for (y, z), out in zip(relus, ("y", "x2"), strict=False):
        conv(net, before, out)
        net.Relu([y], [z])
        before = z
    net.Negative([before], ["result"])
    feed()
    workspace.RunNetOnce(net)
    expected = workspace.FetchBlob("result")
    result = transformed("FuseNNPACKConvRelu", net)
    assert [op.type for op in result.op] == ["Conv"] * len(relus) + ["Negative"]
    assert all(op.output[0] not in op.input for op in result.op)
    feed()
    workspace.RunNetOnce(result)
    np.testing.assert_allclose(workspace.FetchBlob("result"), expected, rtol=1e-6)


def test_values_that_others_need_are_not_fused_away() -> None:
    for reader in (None, "y", "output"):
        net = core.Net("kept")
        conv(net, "x", "y")
        net.Relu(["y"], ["z"])
        if reader == "y":
            net.Negative(["y"], ["also"])
        if reader == "output":
            net.AddExternalOutput(core.BlobReference("y"))
        count = len(transformed("FuseNNPACKConvRelu", net).op)
        assert count == {None: 1, "y": 3, "output": 2}[reader]


def test_transforms_set_engines_and_remove_dead_code() -> None:
    net = core.Net("engines")
    net.Conv(["x", "w"], ["y"], kernel=3)
    net.Relu(["x"], ["unused"])
    net.AddExternalOutput(core.BlobReference("y"))
    assert transformed("AddNNPACK", net).op[0].engine == "NNPACK"
    assert [op.type for op in transformed("DeadCodeElim", net).op] == ["Conv"]
    assert [op.engine for op in net.Proto().op] == ["", ""], "the net itself is unchanged"
    with pytest.raises(RuntimeError, match="no transform 'Nothing'"):
        C.run_transform("Nothing", b"")
    assert C.transform_exists("AddNNPACK") and not C.transform_exists("FuseConvBN")
    assert C.workspace_transform_exists("FuseConvBN")
