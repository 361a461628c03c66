# SPDX-License-Identifier: Apache-2.0
"""Operators on Int8 tensors, which are quantized before, and dequantized to be compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case

RANDOM = np.random.RandomState(8)

IMAGE = (2, 6, 5, 8)
FINE = {"Y_scale": 0.02, "Y_zero_point": 120}
COARSE = {"Y_scale": 0.05, "Y_zero_point": 100}


def floats(*sizes: int, scale: float = 1.0) -> np.ndarray:
    """Values around zero, some beyond what is quantized."""
    return (RANDOM.randn(*sizes) * scale).astype(np.float32)


def fill(name: str, *sizes: int, scale: float = 0.01, zero: int = 128) -> tuple:
    """A step that makes a blob of bytes."""
    values = RANDOM.randint(0, 256, sizes).astype(np.uint8).tobytes()
    return (
        "Int8GivenTensorFill",
        [],
        [name],
        {"shape": list(sizes), "values": values, "Y_scale": scale, "Y_zero_point": zero},
    )


def biases(name: str, n: int, scale: float = 0.0002) -> tuple:
    """A step that makes a blob of int32."""
    values = RANDOM.randint(-9000, 9000, n).tolist()
    return (
        "Int8GivenIntTensorFill",
        [],
        [name],
        {"shape": [n], "values": values, "Y_scale": scale, "Y_zero_point": 0},
    )


def int8(
    name: str,
    op_type: str,
    *inputs: Any,
    outputs: int = 1,
    inplace: bool = False,
    quantized: dict[str, Any] | None = None,
    refused: bool = False,
    **arguments: Any,
) -> Case:
    """An operator on quantized inputs; an input is an array, or a step that makes its blob."""
    feeds, steps, names = {}, [], []
    for i, one in enumerate(inputs):
        if isinstance(one, tuple):
            steps.append(one)
            names.append(one[2][0])
        else:
            feeds[f"X{i}"] = one
            steps.append(("Int8Quantize", [f"X{i}"], [f"Q{i}"], quantized or FINE))
            names.append(f"Q{i}")
    results = [names[0]] if inplace else ["R"]
    results += [f"S{o}" for o in range(1, outputs)]
    steps.append((op_type, names, results, {**arguments}))
    if not refused:  # of a case that crashes, the last step does
        steps.append(("Int8Dequantize", results[:1], ["Y"], {}))
    return Case(f"{op_type} {name}", feeds, steps, [] if refused else ["Y"])


def halves() -> np.ndarray:
    """Values halfway between two steps of 0.5."""
    return (np.arange(-40, 40).astype(np.float32) + 0.5) * 0.5


def conv(name: str, op_type: str, *filter_sizes: int, **arguments: Any) -> Case:
    """A convolution of the image in NHWC."""
    operands = (
        floats(*IMAGE),
        fill("w", *filter_sizes),
        biases("b", arguments.pop("n", None) or filter_sizes[0]),
    )
    return int8(name, op_type, *operands, order="NHWC", **{**COARSE, **arguments})


# fmt: off
CASES = [
    Case(
        "Int8Quantize halves",
        {"X": halves()},
        [
            ("Int8Quantize", ["X"], ["Q"], {"Y_scale": 0.5, "Y_zero_point": 128}),
            ("Int8Dequantize", ["Q"], ["Y"], {}),
        ],
        ["Y"],
    ),
    Case("Int8Quantize defaults", {"X": floats(3, 4, scale=100)},
         [("Int8Quantize", ["X"], ["Q"], {}), ("Int8Dequantize", ["Q"], ["Y"], {})], ["Y"]),
    Case(
        "Int8Quantize fine",
        {"X": floats(50, 40)},
        [
            ("Int8Quantize", ["X"], ["Q"], {"Y_scale": 0.0173, "Y_zero_point": 77}),
            ("Int8Dequantize", ["Q"], ["Y"], {}),
        ],
        ["Y"],
    ),
    Case("Int8Quantize int64", {"X": np.arange(3)}, [("Int8Quantize", ["X"], ["Q"], {})], []),
    Case("Int8Dequantize floats", {"X": floats(3)}, [("Int8Dequantize", ["X"], ["Y"], {})]),
    Case("Int8GivenTensorFill", {}, [fill("w", 3, 4), ("Int8Dequantize", ["w"], ["Y"], {})], ["Y"]),
    Case("Int8GivenIntTensorFill as bytes", {},
         [biases("b", 4), ("Int8Dequantize", ["b"], ["Y"], {})], ["Y"]),
    int8("plain", "Int8Relu", floats(*IMAGE), **FINE),
    int8("without arguments", "Int8Relu", floats(*IMAGE), refused=True),
    int8("in place", "Int8Relu", floats(*IMAGE), inplace=True, **FINE),
    int8("plain", "Int8LeakyRelu", floats(*IMAGE), alpha=0.1, **COARSE),
    int8("default", "Int8LeakyRelu", floats(*IMAGE), **FINE),
    int8("steep", "Int8LeakyRelu", floats(*IMAGE), alpha=0.9, Y_scale=0.03, Y_zero_point=7),
    int8("plain", "Int8Sigmoid", floats(*IMAGE), Y_scale=1 / 256, Y_zero_point=0),
    int8("another scale", "Int8Sigmoid", floats(*IMAGE), refused=True, **FINE),
    int8("plain", "Int8Softmax", floats(5, 7), Y_scale=1 / 256, Y_zero_point=0),
    int8("image", "Int8Softmax", floats(*IMAGE), Y_scale=1 / 256, Y_zero_point=0),
    int8("wide", "Int8Softmax", floats(3, 300, scale=3), Y_scale=1 / 256, Y_zero_point=0,
         quantized=COARSE),
    int8("axis", "Int8Softmax", floats(2, 3, 4), axis=2, Y_scale=1 / 256, Y_zero_point=0),
    int8("another scale", "Int8Softmax", floats(5, 7), refused=True, **FINE),
    int8("plain", "Int8Flatten", floats(*IMAGE), **FINE),
    int8("axis", "Int8Flatten", floats(*IMAGE), axis=2, **FINE),
    int8("plain", "Int8Reshape", floats(*IMAGE), outputs=2, shape=[2, -1], **FINE),
    int8("zero", "Int8Reshape", floats(*IMAGE), outputs=2, shape=[0, -1, 4], **FINE),
    int8("plain", "Int8Transpose", floats(2, 3, 4), axes=[2, 0, 1], **FINE),
    int8("default", "Int8Transpose", floats(2, 3, 4), **FINE),
    int8("plain", "Int8Slice", floats(*IMAGE), starts=[0, 1, 0, 0], ends=[-1, 4, -1, -1], **FINE),
    int8("one dimension", "Int8Slice", floats(*IMAGE), starts=[1, 0, 0, 0], ends=[2, -1, -1, -1],
         **FINE),
    int8("plain", "Int8ChannelShuffle", floats(*IMAGE), group=2, kernel=1, order="NHWC", **FINE),
    int8("four", "Int8ChannelShuffle", floats(*IMAGE), group=4, kernel=1, order="NHWC", **FINE),
    int8("plain", "Int8Concat", floats(*IMAGE), floats(*IMAGE), order="NHWC", axis=3, **FINE),
    int8("default axis", "Int8Concat", floats(*IMAGE), floats(*IMAGE), order="NHWC", **FINE),
    int8("two outputs", "Int8Concat", floats(*IMAGE), floats(*IMAGE), outputs=2, axis=3, **FINE),
    int8("one", "Int8Concat", floats(*IMAGE), axis=3, **FINE),
    int8("other scale", "Int8Concat", floats(*IMAGE), floats(*IMAGE), refused=True, axis=3,
         **COARSE),
    *[
        int8(name, op_type, *inputs, **arguments)
        for op_type in ("Int8Add", "Int8AddRelu", "Int8Sum", "Int8SumRelu")
        for name, inputs, arguments in (
            ("plain", (floats(*IMAGE), floats(*IMAGE)), COARSE),
            ("fine", (floats(*IMAGE), floats(*IMAGE)), {"Y_scale": 0.013, "Y_zero_point": 60}),
            ("of another scale", (floats(7, 9), fill("w", 7, 9, scale=0.3, zero=9)), COARSE),
            ("of a small scale", (floats(7, 9), fill("w", 7, 9, scale=0.0003)), COARSE),
            ("in place", (floats(7, 9), floats(7, 9)), {**COARSE, "inplace": True}),
            ("of other sizes", (floats(7, 9), floats(9)), COARSE),
        )
    ],
    int8("of three", "Int8Sum", floats(7, 9), floats(7, 9), floats(7, 9), **COARSE),
    int8("of one", "Int8Sum", floats(7, 9), **COARSE),
    *[
        int8(name, op_type, floats(*IMAGE), **{"order": "NHWC", **given, **arguments})
        for op_type, given in (
            ("Int8AveragePool", COARSE),
            ("Int8AveragePoolRelu", COARSE),
            ("Int8MaxPool", FINE),
            ("Int8MaxPoolRelu", FINE),
        )
        for name, arguments in (
            ("plain", {"kernel": 2, "stride": 2}),
            ("padded", {"kernel": 3, "pad": 1}),
            ("uneven", {"kernel_h": 2, "kernel_w": 3, "stride": 1}),
            ("global", {"global_pooling": 1}),
            (
                "another scale",
                {"kernel": 2, "refused": "Max" in op_type, "Y_scale": 0.01, "Y_zero_point": 10},
            ),
            ("NCHW", {"kernel": 2, "order": "NCHW"}),
        )
    ],
    *[
        case
        for op_type in ("Int8Conv", "Int8ConvRelu")
        for case in (
            conv("1x1", op_type, 6, 1, 1, 8, kernel=1),
            conv("3x3", op_type, 6, 3, 3, 8, kernel=3, pad=1),
            conv("strided", op_type, 6, 3, 3, 8, kernel=3, pad=1, stride=2),
            conv("dilated", op_type, 6, 2, 2, 8, kernel=2, dilation=2),
            conv("grouped", op_type, 6, 3, 3, 4, kernel=3, pad=1, group=2),
            conv("by channel", op_type, 8, 3, 3, 1, kernel=3, pad=1, group=8),
            conv("fine", op_type, 6, 3, 3, 8, kernel=3, Y_scale=0.0123, Y_zero_point=3),
            conv("of too small a scale", op_type, 6, 3, 3, 8, kernel=3, Y_scale=0.0001),
            conv("uneven pads", op_type, 6, 3, 3, 8, kernel=3, pad_t=1, pad_b=0, pad_l=0, pad_r=1),
        )
    ],
    int8("without bias", "Int8Conv", floats(*IMAGE), fill("w", 6, 3, 3, 8), kernel=3, order="NHWC",
         **COARSE),
    conv("plain", "Int8ConvTranspose", 8, 2, 2, 8, kernel=2, stride=2),
    conv("few", "Int8ConvTranspose", 8, 3, 3, 4, kernel=3, stride=2, n=4),
    conv("few, first", "Int8ConvTranspose", 4, 3, 3, 8, kernel=3, stride=2, refused=True),
    conv("adjusted", "Int8ConvTranspose", 8, 3, 3, 8, kernel=3, stride=2, pad=1, adj=1),
    int8("plain", "Int8FC", floats(5, 12), fill("w", 7, 12), biases("b", 7), **COARSE),
    int8("image", "Int8FC", floats(2, 2, 3, 2), fill("w", 7, 12), biases("b", 7), **COARSE),
    int8("axis", "Int8FC", floats(2, 3, 12), fill("w", 7, 12), biases("b", 7), refused=True, axis=2,
         **COARSE),
    int8("fine", "Int8FC", floats(5, 12), fill("w", 7, 12), biases("b", 7), Y_scale=0.017,
         Y_zero_point=2),
    int8("too few", "Int8FC", floats(5, 11), fill("w", 7, 12), biases("b", 7), refused=True,
         **COARSE),
    int8("doubled", "Int8ResizeNearest", floats(*IMAGE), width_scale=2.0, height_scale=2.0, **FINE),
    int8("uneven", "Int8ResizeNearest", floats(*IMAGE), width_scale=1.5, height_scale=3.0, **FINE),
]
# fmt: on
