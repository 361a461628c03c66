# SPDX-License-Identifier: Apache-2.0
"""Nets rewritten to run faster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, transformations, workspace
from bridge.caffe2.proto import caffe2_pb2

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def convolution(*following: tuple[str, Any, Any]) -> core.Net:
    net = core.Net("net")
    net.Conv(["x", "w", "b"], ["y"], kernel=3)
    for op_type, inputs, outputs in following:
        getattr(net, op_type)(inputs, outputs)
    return net


def types(net: core.Net) -> list[str]:
    return [op.type for op in net.Proto().op]


@pytest.mark.parametrize("by_name", [False, True])
def test_relu_is_fused_with_nnpack(by_name: bool) -> None:
    net = convolution(("Relu", ["y"], ["y"]))
    transformer = transformations.Transformer()
    transformer.AddNNPACK(net)
    assert net.Proto().op[0].engine == "NNPACK"
    fuse = transformer.FuseNNPACKConvRelu if by_name else transformations.fuseNNPACKConvRelu
    fuse(net)
    assert types(net) == ["Conv"]


@pytest.mark.parametrize("by_name", [False, True])
def test_normalization_is_fused(by_name: bool) -> None:
    rng = np.random.default_rng(3)
    net = core.Net("net")
    net.Conv(["x", "w", "b"], ["y"], kernel=3)
    net.SpatialBN(["y", "s", "o", "m", "v"], ["z"], is_test=1, epsilon=1e-5)
    shapes = {"x": (1, 2, 5, 5), "w": (4, 2, 3, 3), "b": 4, "s": 4, "o": 4, "m": 4, "v": 4}
    for name, shape in shapes.items():
        workspace.FeedBlob(name, rng.uniform(0.5, 1.5, shape).astype(np.float32))
    workspace.RunNetOnce(net)
    expected = workspace.FetchBlob("z")
    transformer = transformations.Transformer()
    (transformer.FuseConvBN if by_name else transformations.fuseConvBN)(net)
    assert types(net) == ["Conv"]
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob("z"), expected, rtol=1e-3)


def test_an_unknown_transformation_is_an_attribute_error() -> None:
    with pytest.raises(EnforceNotMet, match="Transformation NoSuch not found") as error:
        transformations.Transformer().NoSuch(core.Net("n"))
    assert isinstance(error.value, AttributeError)


@pytest.mark.parametrize("following", ["SpatialBN", "AffineChannel"])
@pytest.mark.parametrize("in_place", [False, True])
def test_normalizations_become_part_of_convolutions_on_mkldnn(
    following: str, in_place: bool
) -> None:
    random = np.random.RandomState(0)
    names = ["w", "b", "scale", "bias", "mean", "var"]
    sizes = [(3, 2, 3, 3), *[(3,)] * 5]
    for name, size in zip(names, sizes, strict=True):
        workspace.FeedBlob(name, random.rand(*size).astype(np.float32) + 0.5)
    workspace.FeedBlob("x", random.randn(1, 2, 6, 6).astype(np.float32))
    net = core.Net("folded")
    net.Conv(["x", "w", "b"], "y", kernel=3)
    inputs = ["y", *names[2:]] if following == "SpatialBN" else ["y", *names[2:4]]
    arguments = {"is_test": 1} if following == "SpatialBN" else {}
    getattr(net, following)(inputs, "y" if in_place else "z", **arguments)
    transformations.optimizeForMKLDNN(net)
    assert types(net) == ["Conv", following]  # on the CPU
    workspace.RunNetOnce(net)
    expected = workspace.FetchBlob("y" if in_place else "z")
    for operator in net.Proto().op:
        operator.device_option.device_type = caffe2_pb2.IDEEP
    transformations.optimizeForMKLDNN(net, training_mode=True)
    assert types(net) == ["Conv", following]
    transformations.optimizeForMKLDNN(net)
    assert types(net) == ["Conv"]
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(
        workspace.FetchBlob("y" if in_place else "z"), expected, rtol=1e-4, atol=1e-5
    )
