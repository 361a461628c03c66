# SPDX-License-Identifier: Apache-2.0
"""Transforms that use blobs, and the one that runs the faster net."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

C = workspace.C
pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("order", ["NCHW", "NHWC"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("listed", [True, False])
def test_normalization_becomes_part_of_a_convolution(order: str, bias: bool, listed: bool) -> None:
    random = np.random.default_rng(1)
    image, weights = ((1, 2, 6, 6), (3, 2, 3, 3))
    if order == "NHWC":
        image, weights = (1, 6, 6, 2), (3, 3, 3, 2)
    sizes = {
        "x": image,
        "w": weights,
        **dict.fromkeys(("b", "scale", "shift", "mean", "var"), (3,)),
    }
    for name, size in sizes.items():
        workspace.FeedBlob(name, random.random(size).astype(np.float32) + 0.5)
    net = core.Net("normalized")
    net.Conv(["x", "w", "b"][: 2 + bias], ["y"], kernel=3, order=order)
    norm = ["y", "scale", "shift", "mean", "var"]
    net.SpatialBN(norm, ["z"], is_test=True, order=order, epsilon=1e-3)
    if not listed:
        del net.Proto().external_input[:]
    workspace.RunNetOnce(net)
    expected, filters = workspace.FetchBlob("z"), workspace.FetchBlob("w")
    net.Proto().ParseFromString(C.transform_fuseConvBN(net.Proto().SerializeToString()))
    assert [op.type for op in net.Proto().op] == ["Conv"]
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob("z"), expected, rtol=1e-4, atol=1e-5)
    assert (workspace.FetchBlob("w") == filters).all(), "others may use the filter"


def test_training_and_shared_outputs_are_left() -> None:
    net = core.Net("training")
    net.Conv(["x", "w"], ["y"], kernel=3)
    net.SpatialBN(["y", "scale", "shift", "mean", "var"], ["z"], is_test=False)
    data = net.Proto().SerializeToString()
    assert len(type(net.Proto()).FromString(C.run_workspace_transform("FuseConvBN", data)).op) == 2


def test_the_faster_net_is_chosen() -> None:
    init, net = core.Net("init"), core.Net("timed")
    init.ConstantFill([], ["x"], shape=[1, 1, 4, 4], value=1.0)
    init.ConstantFill([], ["w"], shape=[1, 1, 3, 3], value=1.0)
    net.Conv(["x", "w"], ["y"], kernel=3)
    always = workspace.ApplyTransformIfFaster(
        "ConvToNNPack", net.Proto(), init.Proto(), improvement_threshold=0.0
    )
    never = workspace.ApplyTransformIfFaster(
        "ConvToNNPack", net.Proto(), init.Proto(), main_runs=1, improvement_threshold=1e9
    )
    assert (always.op[0].engine, never.op[0].engine) == ("NNPACK", "")
    with pytest.raises(RuntimeError, match="not found in registry: Nothing"):
        workspace.ApplyTransform("Nothing", net.Proto())
    data = net.Proto().SerializeToString()
    assert b"NNPACK" in C.apply_transform(b"ConvToNNPack", data)
    init_data = init.Proto().SerializeToString()
    assert C.apply_transform_if_faster(b"ConvToNNPack", data, init_data, 1, 1, 1e9) == data
