# SPDX-License-Identifier: Apache-2.0
"""Pooling: every way to say kernel, stride and padding."""

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
        case("legacy VALID, kernel too large", op, IMAGE, kernel=8, stride=3, legacy_pad=1),
        case("legacy VALID, no images", op, IMAGE[:0], kernel=8, stride=3, legacy_pad=1),
        case("legacy SAME, stride over kernel", op, IMAGE, kernel=1, stride=3, legacy_pad=2),
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
        case("kernel too large but for pads", op, values(1, 2, 3, 4), kernel=4, pad=1),
        case(
            "volume, kernel too large but for pads",
            op,
            values(1, 2, 5, 5, 5),
            kernels=[6] * 3,
            pads=[1] * 6,
            strides=[1] * 3,
        ),
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
]
