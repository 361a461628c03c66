# SPDX-License-Identifier: Apache-2.0
"""Convolution and pooling: every way to say kernel, stride, padding and dilation."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(13)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


IMAGE = values(2, 4, 7, 6)
LINE = values(2, 4, 9)
VOLUME = values(1, 2, 5, 4, 6)
NHWC = values(2, 7, 6, 4)


def pools(op: str) -> list[Case]:
    return [
        case("kernel", op, IMAGE, kernel=2),
        case("stride", op, IMAGE, kernel=3, stride=2),
        case("pad", op, IMAGE, kernel=3, stride=2, pad=1),
        case("large pad", op, IMAGE, kernel=3, stride=2, pad=2),
        case("kernel of two sizes", op, IMAGE, kernel_h=3, kernel_w=2, stride_h=1, stride_w=2),
        case("pads by side", op, IMAGE, kernel=3, stride=2, pad_t=0, pad_l=1, pad_b=1, pad_r=2),
        case("pads at the end", op, IMAGE, kernel=3, stride=2, pad_t=0, pad_l=0, pad_b=1, pad_r=1),
        case("lists", op, IMAGE, kernels=[3, 2], strides=[2, 1], pads=[1, 0, 1, 1]),
        case("one dimension", op, LINE, kernels=[3], strides=[2], pads=[1, 1]),
        case("one dimension, uneven", op, LINE, kernels=[4], strides=[3], pads=[0, 2]),
        case("three dimensions", op, VOLUME, kernels=[2, 2, 3], strides=[2, 1, 2], pads=[0] * 6),
        case("three dimensions, pads", op, VOLUME, kernels=[3] * 3, strides=[2] * 3, pads=[1] * 6),
        case("three dimensions, uneven", op, VOLUME, kernels=[3] * 3, pads=[0, 1, 2, 1, 0, 0]),
        case("legacy VALID", op, IMAGE, kernel=3, stride=2, legacy_pad=1),
        case("legacy SAME", op, IMAGE, kernel=3, stride=2, legacy_pad=2),
        case("legacy SAME, even", op, IMAGE, kernel=2, stride=1, legacy_pad=2),
        case("legacy Caffe", op, IMAGE, kernel=3, stride=2, legacy_pad=3),
        case("legacy Caffe, pad", op, IMAGE, kernel=3, stride=2, pad=1, legacy_pad=3),
        case("legacy Caffe, kernel 2", op, IMAGE, kernel=2, stride=2, legacy_pad=3),
        case("global", op, IMAGE, global_pooling=1),
        case("global, kernel 0", op, IMAGE, global_pooling=1, kernel=0, stride=1, pad=0),
        case("global NHWC", op, NHWC, global_pooling=1, order="NHWC"),
        case("global of three dimensions", op, VOLUME, global_pooling=1),
        case("global of one dimension", op, LINE, global_pooling=1),
        case("global, stride", op, IMAGE, global_pooling=1, stride=2),
        case("NHWC", op, NHWC, kernel=3, stride=2, pad=1, order="NHWC"),
        case("NHWC, uneven", op, NHWC, kernel=3, stride=2, pads=[0, 1, 1, 2], order="NHWC"),
        case("NHWC, legacy Caffe", op, NHWC, kernel=3, stride=2, legacy_pad=3, order="NHWC"),
        case("NHWC, one dimension", op, values(2, 9, 4), kernels=[3], strides=[2], order="NHWC"),
        case(
            "NHWC, three dimensions",
            op,
            values(1, 4, 5, 6, 2),
            kernels=[2, 3, 2],
            pads=[1, 1, 0, 0, 1, 1],
            order="NHWC",
        ),
        case("whole image", op, IMAGE, kernel_h=7, kernel_w=6),
        case("no images", op, np.zeros((0, 3, 5, 5), np.float32), kernel=2),
        case("kernel too large", op, values(1, 1, 2, 2), kernel=3),
        case("no kernel", op, IMAGE),
        case("pad as kernel", op, IMAGE, kernel=2, pad=2),
        case("dilation", op, IMAGE, kernel=2, dilation=2),
        case("legacy SAME and pad", op, IMAGE, kernel=3, pad=1, legacy_pad=2),
        case("strange order", op, IMAGE, kernel=2, order="NWHC"),
        case("double", op, IMAGE.astype(np.float64), kernel=2),
        case("1D name", f"{op}1D", LINE, kernels=[3], strides=[2]),
        case("2D name", f"{op}2D", IMAGE, kernel=3, stride=2),
        case("3D name", f"{op}3D", VOLUME, kernels=[2, 2, 2], strides=[2, 2, 2]),
    ]


def backwards(op: str, image: np.ndarray, **args: object) -> Case:
    """A pooling operator, and the gradient of what it makes."""
    said = " ".join(f"{name}={value}" for name, value in args.items())
    name = f"{op}Gradient {said} {image.ndim}"
    steps = [(op, ["X"], ["Y"], args), (f"{op}Gradient", ["X", "Y", "Y"], ["dX"], args)]
    return Case(name, {"X": image}, steps)


GRADIENTS = [
    backwards(op, image, **args)
    for op in ("MaxPool", "AveragePool")
    for image, args in (
        (IMAGE, {"kernel": 2, "stride": 2}),
        (IMAGE, {"kernel": 3, "stride": 2, "pad": 1}),
        (IMAGE, {"kernel": 3, "stride": 1, "pads": [0, 1, 1, 2]}),
        (IMAGE, {"kernel": 3, "stride": 2, "legacy_pad": 3}),
        (IMAGE, {"global_pooling": 1}),
        (NHWC, {"kernel": 3, "stride": 2, "pad": 1, "order": "NHWC"}),
        (LINE, {"kernels": [3], "strides": [2]}),
        (VOLUME, {"kernels": [2, 2, 2], "strides": [2, 1, 2]}),
    )
]

FILTER = values(6, 4, 3, 3)
BIAS = values(6)

CONVOLUTIONS = [
    case("kernel", "Conv", IMAGE, FILTER, BIAS, kernel=3),
    case("no bias", "Conv", IMAGE, FILTER, kernel=3),
    case("stride and pad", "Conv", IMAGE, FILTER, BIAS, kernel=3, stride=2, pad=1),
    case("dilation", "Conv", IMAGE, FILTER, BIAS, kernel=3, dilation=2, pad=2),
    case("group", "Conv", IMAGE, values(6, 2, 3, 3), BIAS, kernel=3, group=2, pad=1),
    case("depthwise", "Conv", IMAGE, values(4, 1, 3, 3), values(4), kernel=3, group=4, pad=1),
    case(
        "depthwise engine",
        "Conv",
        IMAGE,
        values(4, 1, 3, 3),
        values(4),
        kernel=3,
        group=4,
        pad=1,
        engine="DEPTHWISE_3x3",
    ),
    case("engine list", "Conv", IMAGE, FILTER, BIAS, kernel=3, engine="DEPTHWISE_3x3,EIGEN"),
    case("two outputs a channel", "Conv", IMAGE, values(8, 1, 3, 3), kernel=3, group=4),
    case("1x1", "Conv", IMAGE, values(6, 4, 1, 1), BIAS, kernel=1),
    case("1x1, stride", "Conv", IMAGE, values(6, 4, 1, 1), BIAS, kernel=1, stride=2),
    case("1x1, group", "Conv", IMAGE, values(6, 2, 1, 1), BIAS, kernel=1, group=2),
    case(
        "two sizes",
        "Conv",
        IMAGE,
        values(6, 4, 3, 2),
        BIAS,
        kernel_h=3,
        kernel_w=2,
        stride_h=2,
        stride_w=1,
    ),
    case("pads by side", "Conv", IMAGE, FILTER, BIAS, kernel=3, pad_t=0, pad_l=1, pad_b=2, pad_r=1),
    case(
        "lists",
        "Conv",
        IMAGE,
        values(6, 4, 3, 2),
        kernels=[3, 2],
        strides=[2, 1],
        pads=[1, 0, 2, 1],
        dilations=[1, 2],
    ),
    case("legacy VALID", "Conv", IMAGE, FILTER, BIAS, kernel=3, legacy_pad=1),
    case("legacy SAME", "Conv", IMAGE, FILTER, BIAS, kernel=3, stride=2, legacy_pad=2),
    case("legacy Caffe", "Conv", IMAGE, FILTER, BIAS, kernel=3, stride=2, legacy_pad=3),
    case(
        "one dimension", "Conv", LINE, values(6, 4, 3), BIAS, kernels=[3], strides=[2], pads=[1, 1]
    ),
    case(
        "three dimensions",
        "Conv",
        VOLUME,
        values(3, 2, 2, 3, 2),
        values(3),
        kernels=[2, 3, 2],
        pads=[1, 1, 0, 1, 1, 0],
    ),
    case(
        "three dimensions, uneven",
        "Conv",
        VOLUME,
        values(3, 2, 2, 2, 2),
        kernels=[2] * 3,
        pads=[0, 1, 0, 1, 0, 1],
        strides=[2, 1, 2],
    ),
    case(
        "three dimensions, group", "Conv", VOLUME, values(4, 1, 2, 2, 2), kernels=[2] * 3, group=2
    ),
    case("NHWC", "Conv", NHWC, values(6, 3, 3, 4), BIAS, kernel=3, stride=2, pad=1, order="NHWC"),
    case("NHWC 1x1", "Conv", NHWC, values(6, 1, 1, 4), BIAS, kernel=1, order="NHWC"),
    case("NHWC, group", "Conv", NHWC, values(6, 3, 3, 2), BIAS, kernel=3, group=2, order="NHWC"),
    case("NHWC, depthwise", "Conv", NHWC, values(4, 3, 3, 1), kernel=3, group=4, order="NHWC"),
    case(
        "NHWC, uneven", "Conv", NHWC, values(6, 3, 3, 4), kernel=3, pads=[0, 1, 2, 1], order="NHWC"
    ),
    case("NHWC, dilation", "Conv", NHWC, values(6, 3, 3, 4), kernel=3, dilation=2, order="NHWC"),
    case(
        "NHWC, one dimension", "Conv", values(2, 9, 4), values(6, 3, 4), kernels=[3], order="NHWC"
    ),
    case(
        "NHWC, three dimensions",
        "Conv",
        values(1, 4, 5, 6, 2),
        values(3, 2, 2, 2, 2),
        kernels=[2] * 3,
        order="NHWC",
    ),
    case("no images", "Conv", np.zeros((0, 4, 7, 6), np.float32), FILTER, BIAS, kernel=3),
    case("channels differ", "Conv", IMAGE, values(6, 3, 3, 3), BIAS, kernel=3),
    case("bias too short", "Conv", IMAGE, FILTER, values(5), kernel=3),
    case("kernel differs", "Conv", IMAGE, FILTER, BIAS, kernel=2),
    case("no kernel", "Conv", IMAGE, FILTER, BIAS),
    case("outputs not divisible", "Conv", IMAGE, values(5, 2, 3, 3), kernel=3, group=2),
    case("filter of three dimensions", "Conv", IMAGE, values(6, 4, 3), kernel=3),
    case("image too small", "Conv", values(1, 4, 2, 2), FILTER, kernel=3),
    case("double", "Conv", IMAGE.astype(np.float64), FILTER, BIAS, kernel=3),
    case("name", "Conv1D", LINE, values(6, 4, 3), BIAS, kernels=[3]),
    case("name", "Conv2D", IMAGE, FILTER, BIAS, kernel=3),
    case("name", "Conv3D", VOLUME, values(3, 2, 2, 2, 2), kernels=[2] * 3),
    case("values", "ConvRelu", IMAGE, FILTER, BIAS, kernel=3, pad=1),
    case("all", "ConvGradient", IMAGE, FILTER, values(2, 6, 5, 4), outputs=3, kernel=3),
    case("parameters", "ConvGradient", IMAGE, FILTER, values(2, 6, 5, 4), outputs=2, kernel=3),
    case(
        "no bias", "ConvGradient", IMAGE, FILTER, values(2, 6, 5, 4), outputs=2, kernel=3, no_bias=1
    ),
    case(
        "filter only",
        "ConvGradient",
        IMAGE,
        FILTER,
        values(2, 6, 5, 4),
        outputs=1,
        kernel=3,
        no_bias=1,
    ),
    case(
        "stride and pads",
        "ConvGradient",
        IMAGE,
        FILTER,
        values(2, 6, 4, 3),
        outputs=3,
        kernel=3,
        stride=2,
        pad=1,
    ),
    case(
        "uneven",
        "ConvGradient",
        IMAGE,
        FILTER,
        values(2, 6, 7, 6),
        outputs=3,
        kernel=3,
        pads=[2, 1, 0, 1],
    ),
    case(
        "group",
        "ConvGradient",
        IMAGE,
        values(6, 2, 3, 3),
        values(2, 6, 5, 4),
        outputs=3,
        kernel=3,
        group=2,
    ),
    case(
        "NHWC",
        "ConvGradient",
        NHWC,
        values(6, 3, 3, 4),
        values(2, 5, 4, 6),
        outputs=3,
        kernel=3,
        order="NHWC",
    ),
    case(
        "one dimension",
        "ConvGradient",
        LINE,
        values(6, 4, 3),
        values(2, 6, 7),
        outputs=3,
        kernels=[3],
    ),
    case(
        "three dimensions",
        "ConvGradient",
        VOLUME,
        values(3, 2, 2, 2, 2),
        values(1, 3, 4, 3, 5),
        outputs=3,
        kernels=[2] * 3,
    ),
    # Transposed.
    case("kernel", "ConvTranspose", IMAGE, values(4, 3, 3, 3), values(3), kernel=3),
    case("no bias", "ConvTranspose", IMAGE, values(4, 3, 3, 3), kernel=3),
    case(
        "stride and pad",
        "ConvTranspose",
        IMAGE,
        values(4, 3, 3, 3),
        values(3),
        kernel=3,
        stride=2,
        pad=1,
    ),
    case(
        "adj",
        "ConvTranspose",
        IMAGE,
        values(4, 3, 3, 3),
        values(3),
        kernel=3,
        stride=2,
        pad=1,
        adj=1,
    ),
    case("adj too large", "ConvTranspose", IMAGE, values(4, 3, 3, 3), kernel=3, adj=2),
    case(
        "two sizes",
        "ConvTranspose",
        IMAGE,
        values(4, 3, 2, 3),
        values(3),
        kernel_h=2,
        kernel_w=3,
        stride_h=1,
        stride_w=2,
        adj_h=0,
        adj_w=1,
    ),
    case(
        "uneven",
        "ConvTranspose",
        IMAGE,
        values(4, 3, 3, 3),
        values(3),
        kernel=3,
        stride=2,
        pads=[0, 1, 1, 2],
    ),
    case(
        "uneven, adj",
        "ConvTranspose",
        IMAGE,
        values(4, 3, 3, 3),
        kernel=3,
        stride=2,
        pads=[0, 1, 1, 2],
        adj=1,
    ),
    case(
        "lists",
        "ConvTranspose",
        IMAGE,
        values(4, 3, 3, 2),
        kernels=[3, 2],
        strides=[2, 1],
        adjs=[1, 0],
    ),
    case("group", "ConvTranspose", IMAGE, values(4, 3, 3, 3), values(6), kernel=3, group=2),
    case(
        "NHWC",
        "ConvTranspose",
        NHWC,
        values(4, 3, 3, 3),
        values(3),
        kernel=3,
        stride=2,
        order="NHWC",
    ),
    case(
        "NHWC, adj",
        "ConvTranspose",
        NHWC,
        values(4, 3, 2, 5),
        values(5),
        kernel_h=3,
        kernel_w=2,
        stride=2,
        adj=1,
        order="NHWC",
    ),
    case("legacy SAME", "ConvTranspose", IMAGE, values(4, 3, 3, 3), kernel=3, legacy_pad=2),
    case("channels differ", "ConvTranspose", IMAGE, values(3, 3, 3, 3), kernel=3),
    case(
        "no images",
        "ConvTranspose",
        np.zeros((0, 4, 3, 3), np.float32),
        values(4, 3, 3, 3),
        kernel=3,
    ),
    case(
        "all",
        "ConvTransposeGradient",
        IMAGE,
        values(4, 3, 3, 3),
        values(2, 3, 9, 8),
        outputs=3,
        kernel=3,
    ),
    case(
        "adj",
        "ConvTransposeGradient",
        IMAGE,
        values(4, 3, 3, 3),
        values(2, 3, 14, 12),
        outputs=3,
        kernel=3,
        stride=2,
        pad=1,
        adj=1,
    ),
    case(
        "no bias",
        "ConvTransposeGradient",
        IMAGE,
        values(4, 3, 3, 3),
        values(2, 3, 9, 8),
        outputs=2,
        kernel=3,
        no_bias=1,
    ),
]

LP_POOLS = [
    case("plain", "LpPool", IMAGE, kernel=2, stride=2),
    case("p 3", "LpPool", np.abs(IMAGE), kernel=3, stride=2, p=3.0),
    case("pad", "LpPool", IMAGE, kernel=3, stride=2, pad=1),
    case("NHWC", "LpPool", NHWC, kernel=2, stride=2, order="NHWC"),
    case("global", "LpPool", IMAGE, global_pooling=1),
    backwards("LpPool", IMAGE, kernel=2, stride=2),
]

CASES: list[Case] = [
    *pools("MaxPool"),
    *pools("AveragePool"),
    case("pads counted", "AveragePool", IMAGE, kernel=3, stride=2, pad=1, count_include_pad=1),
    case(
        "pads counted, uneven",
        "AveragePool",
        IMAGE,
        kernel=3,
        stride=2,
        pads=[0, 1, 2, 1],
        count_include_pad=1,
    ),
    case(
        "pads counted, legacy Caffe",
        "AveragePool",
        IMAGE,
        kernel=3,
        stride=2,
        legacy_pad=3,
        count_include_pad=1,
    ),
    case(
        "pads counted, NHWC",
        "AveragePool",
        NHWC,
        kernel=3,
        stride=2,
        pad=1,
        order="NHWC",
        count_include_pad=1,
    ),
    *LP_POOLS,
    *GRADIENTS,
    *CONVOLUTIONS,
]
