# SPDX-License-Identifier: Apache-2.0
"""Int8 operators that Caffe2's results are matched by to one step, and what a blob holds."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def run(op_type: str, inputs: list[str], outputs: list[str], **arguments: object) -> None:
    workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, **arguments))


def test_roi_align_agrees_with_the_real_values_to_one_step() -> None:
    random = np.random.RandomState(0)
    workspace.FeedBlob("x", random.randn(2, 6, 5, 3).astype(np.float32))
    workspace.FeedBlob("rois", np.array([[0, 1, 1, 9, 8], [1, 0, 2, 5, 10]], np.float32))
    run("Int8Quantize", ["x"], ["q"], Y_scale=0.02, Y_zero_point=120)
    arguments = {"order": "NHWC", "spatial_scale": 0.5, "pooled_h": 3, "pooled_w": 2}
    run("Int8RoIAlign", ["q", "rois"], ["y"], Y_scale=0.03, Y_zero_point=110, **arguments)
    run("Int8Dequantize", ["q"], ["real"])
    run("RoIAlign", ["real", "rois"], ["expected"], **arguments)
    found = workspace.FetchInt8BlobRealVal("y")
    assert np.abs(found - workspace.FetchBlob("expected")).max() <= 0.03


def test_quantized_blob_keeps_its_scale_when_serialized() -> None:
    workspace.FeedBlob("x", np.array([-1.0, 0.0, 2.0], np.float32))
    run("Int8Quantize", ["x"], ["q"], Y_scale=0.5, Y_zero_point=10)
    message = workspace.SerializeBlob("q")
    workspace.ResetWorkspace()
    workspace.DeserializeBlob("q", message)
    data, scale, zero_point = workspace.FetchInt8Blob("q")
    assert (data.tolist(), data.dtype, scale, zero_point) == ([8, 10, 14], np.uint8, 0.5, 10)


def test_biases_are_int32() -> None:
    arguments = {"shape": [2], "values": [-70000, 3], "Y_scale": 0.5, "Y_zero_point": 0}
    run("Int8GivenIntTensorFill", [], ["b"], **arguments)
    assert workspace.FetchInt8Blob("b").data.tolist() == [-70000, 3]


def test_long_sums_of_products_are_exact() -> None:
    """2,000 products of 255 * 255 each are beyond what float32 holds exactly."""
    n = 2000
    values = np.full((1, n), 255, np.uint8).tobytes()
    for name in "xw":
        run("Int8GivenTensorFill", [], [name], shape=[1, n], values=values, Y_zero_point=0)
    run("Int8GivenIntTensorFill", [], ["b"], shape=[1], values=[-255 * 255 * n + 6], Y_scale=1.0)
    run("Int8FC", ["x", "w", "b"], ["y"], Y_scale=2.0, Y_zero_point=0)
    assert workspace.FetchInt8Blob("y").data.tolist() == [[3]]


def test_plain_tensor_is_refused() -> None:
    workspace.FeedBlob("x", np.zeros(3, np.uint8))
    with pytest.raises(EnforceNotMet, match="Int8TensorCPU"):
        run("Int8Dequantize", ["x"], ["y"])


@pytest.mark.parametrize("weight", [1, 120])
def test_sums_of_many_products_are_exact_in_transposed_convolutions(weight: int) -> None:
    """Of 600 channels: the bytes of the filter decide whether float32 holds the sums."""
    n = 600
    image = np.full(n, 255, np.uint8)
    image[-1] = 254
    arguments = {"shape": [1, 1, 1, n], "values": image.tobytes(), "Y_zero_point": 0}
    run("Int8GivenTensorFill", [], ["x"], **arguments)
    values = np.full(n, 128 + weight, np.uint8).tobytes()
    arguments = {"shape": [n, 1, 1, 1], "values": values, "Y_zero_point": 128}
    run("Int8GivenTensorFill", [], ["w"], **arguments)
    bias = 8 - weight * (255 * n - 1)
    run("Int8GivenIntTensorFill", [], ["b"], shape=[1], values=[bias])
    arguments = {"kernel": 1, "stride": 1, "order": "NHWC", "Y_scale": 2.0, "Y_zero_point": 0}
    run("Int8ConvTranspose", ["x", "w", "b"], ["y"], **arguments)
    assert workspace.FetchInt8Blob("y").data.reshape(-1).tolist() == [4]


@pytest.mark.parametrize("engine", ["", "DNNLOWP"])
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
def test_images_of_bytes_are_nhwc_on_mkldnn_whatever_their_order_says(
    kind: str, engine: str
) -> None:
    image = np.random.RandomState(0).rand(2, 3, 7, 8).astype(np.float32)
    workspace.FeedBlob("x", image)
    pad = int(kind == "MaxPool")  # padding counts as zeros in means of bytes
    run(kind, ["x"], ["expected"], kernel=3, stride=2, pad=pad)
    net = core.Net("ideep")
    net.NCHW2NHWC("x", "last")
    net.Int8Quantize("last", "q", Y_scale=1 / 255, Y_zero_point=0)
    getattr(net, f"Int8{kind}")(
        "q", "pooled", kernel=3, stride=2, pad=pad, Y_scale=1 / 255, engine=engine
    )
    net.NHWC2NCHW(net.Int8Dequantize("pooled"), "y")
    net.RunAllOnIDEEP()
    workspace.RunNetOnce(net)
    found, expected = (workspace.FetchBlob(name) for name in ("y", "expected"))
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 0.01
