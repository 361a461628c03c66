# SPDX-License-Identifier: Apache-2.0
"""Operators of the engine DNNLOWP are the plain ones to the steps of their bytes."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")
RANDOM = np.random.RandomState(4)


def floats(*sizes: int) -> np.ndarray:
    return RANDOM.randn(*sizes).astype(np.float32)


def run(op_type, inputs, outputs, engine="DNNLOWP", **arguments):
    op = core.CreateOperator(op_type, inputs, outputs, engine=engine, **arguments)
    workspace.RunOperatorOnce(op)


def steps(op_type, inputs, count=1, engine="DNNLOWP", plain=None, **arguments):
    """Return how many steps of its bytes a result is from the one of the same quantized inputs.

    The first `count` inputs are quantized before.
    """
    names, real = [], []
    for i, x in enumerate(inputs):
        workspace.FeedBlob(f"x{i}", x)
        names.append(f"q{i}" if i < count else f"x{i}")
        real.append(f"r{i}" if i < count else f"x{i}")
        if i < count:
            run("Quantize", [f"x{i}"], [f"q{i}"])
            run("Dequantize", [f"q{i}"], [f"r{i}"])
    run(op_type, names, ["y"], engine, **arguments)
    run(plain or op_type.removeprefix("Int8"), real, ["expected"], "", **arguments)
    expected, (_, scale, _) = workspace.FetchBlob("expected"), workspace.FetchInt8Blob("y")
    assert scale == pytest.approx(np.ptp([0, expected.min(), expected.max()]) / 255, rel=1e-5)
    return np.abs(workspace.FetchInt8BlobRealVal("y") - expected).max() / scale


IMAGE = floats(2, 4, 6, 6)


@pytest.mark.parametrize(
    ("op_type", "inputs", "count", "arguments"),
    [
        ("Add", [IMAGE, IMAGE[::-1].copy()], 2, {}),
        ("Int8Sum", [IMAGE, IMAGE, IMAGE], 3, {}),
        ("Mul", [IMAGE, IMAGE[::-1].copy()], 2, {}),
        ("Concat", [IMAGE, 2 * IMAGE], 0, {"axis": 0}),
        ("AveragePool", [IMAGE], 1, {"kernel": 2}),
        ("BatchMatMul", [floats(2, 3, 4), floats(2, 4, 5)], 2, {}),
        ("SpatialBN", [IMAGE, floats(4), floats(4), floats(4), floats(4) ** 2], 1, {"is_test": 1}),
    ],
)
def test_results_of_quantized_inputs_are_rounded_once(op_type, inputs, count, arguments):
    if op_type == "Concat":
        for i, x in enumerate(inputs):
            workspace.FeedBlob(f"x{i}", x)
        run(op_type, ["x0", "x1"], ["y", "split"], **arguments)
        found, expected = workspace.FetchInt8BlobRealVal("y"), np.concatenate(inputs)
        assert np.abs(found - expected).max() <= 0.51 * workspace.FetchInt8Blob("y").scale
        assert workspace.FetchBlob("split").tolist() == [2, 2]
        return
    assert steps(op_type, inputs, count, **arguments) <= 0.51


@pytest.mark.parametrize("engine", ["DNNLOWP", "DNNLOWP_ROWWISE", "DNNLOWP_ACC16"])
def test_products_with_weights_are_right_to_four_steps(engine):
    inputs = [floats(6, 30), floats(4, 30), floats(4)]
    if engine == "DNNLOWP_ROWWISE":  # each row has its own scale
        inputs[1] *= np.array([[1], [100], [1e-3], [1]], np.float32)
    # Weights are rounded, too: sums of 30 products with half a step each.
    assert steps("FC", inputs, 1, engine) < 4
    with pytest.raises(EnforceNotMet, match="dequantize_output"):
        run("Conv", ["q0", "x1", "x2"], ["z"], engine="DNNLOWP", kernel=1, dequantize_output=1)


def test_convolutions_of_quantized_images_are_right_to_four_steps():
    inputs = [IMAGE, floats(3, 4, 3, 3), floats(3)]
    assert steps("Conv", inputs, kernel=3, pad=1) < 4
    assert steps("Int8ConvRelu", inputs, plain="ConvRelu", kernel=3, pad=1) < 4
    assert workspace.FetchInt8Blob("y").zero_point == 0


def test_packed_weights_give_the_same_product():
    for name, x in (("x", floats(6, 30)), ("w", floats(4, 30)), ("b", floats(4))):
        workspace.FeedBlob(name, x)
    run("Quantize", ["x"], ["q"])
    run("FC", ["q", "w", "b"], ["expected"])
    _, scale, zero_point = workspace.FetchInt8Blob("expected")
    in_scale = workspace.FetchInt8Blob("q").scale
    run("Int8FCPackWeight", ["w", "b"], ["packed", "biases"], in_scale=in_scale)
    assert workspace.FetchInt8Blob("biases").data.dtype == np.int32
    for biases in ("b", "biases"):
        run("Int8FC", ["q", "packed", biases], ["y"], Y_scale=scale, Y_zero_point=zero_point)
        found, expected = (
            workspace.FetchInt8Blob(name).data.astype(int) for name in ("y", "expected")
        )
        assert np.abs(found - expected).max() <= 1


def test_dequantized_outputs_are_floats():
    assert steps("Add", [IMAGE, IMAGE], 2) <= 0.51
    real = workspace.FetchInt8BlobRealVal("y")
    run("Add", ["q0", "q1"], ["y"], dequantize_output=1)
    np.testing.assert_allclose(workspace.FetchBlob("y"), real, rtol=1e-6)
    np.testing.assert_array_equal(workspace.FetchBlob("x0"), IMAGE)


def test_sixteen_bits_are_refused_by_name():
    workspace.FeedBlob("x", IMAGE)
    with pytest.raises(EnforceNotMet, match="Quantize of the engine DNNLOWP_16 is not available"):
        run("Quantize", ["x"], ["y"], engine="DNNLOWP_16")


@pytest.mark.parametrize(
    ("op_type", "sizes", "dtypes"),
    [
        ("Gather", [(6, 2), (3,)], ["float32", "int8"]),
        ("Gather", [(6, 2), (3,)], ["float32", "float32"]),
        ("Sum", [(6, 2), (6, 2)], ["int8", "int8"]),
        ("FC", [(6, 2), (3, 2), (3,)], ["float32", "float32", "float64"]),
    ],
)
def test_types_that_the_plain_operator_refuses_are_refused(op_type, sizes, dtypes):
    names = []
    for i, (size, dtype) in enumerate(zip(sizes, dtypes, strict=True)):
        names.append(f"x{i}")
        workspace.FeedBlob(names[-1], np.ones(size, dtype))
    with pytest.raises(EnforceNotMet, match=rf"has the type {dtypes[-1]}; {op_type} takes") as got:
        run(op_type, names, ["y"])
    assert isinstance(got.value, TypeError)
