# SPDX-License-Identifier: Apache-2.0
"""Convolution and its transposed: every way to say kernel, stride, padding and dilation."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(14)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


IMAGE = values(2, 4, 7, 6)
LINE = values(2, 4, 9)
VOLUME = values(1, 2, 5, 4, 6)
NHWC = values(2, 7, 6, 4)


FILTER = values(6, 4, 3, 3)
BIAS = values(6)

# fmt: off
CASES: list[Case] = [
    case("kernel", "Conv", IMAGE, FILTER, BIAS, kernel=3),
    case("no bias", "Conv", IMAGE, FILTER, kernel=3),
    case("stride and pad", "Conv", IMAGE, FILTER, BIAS, kernel=3, stride=2, pad=1),
    case("dilation", "Conv", IMAGE, FILTER, BIAS, kernel=3, dilation=2, pad=2),
    case("group", "Conv", IMAGE, values(6, 2, 3, 3), BIAS, kernel=3, group=2, pad=1),
    case("depthwise", "Conv", IMAGE, values(4, 1, 3, 3), values(4), kernel=3, group=4, pad=1),
    case("depthwise engine", "Conv", IMAGE, values(4, 1, 3, 3), values(4), kernel=3, group=4, pad=1,
         engine="DEPTHWISE_3x3"),
    case("engine list", "Conv", IMAGE, FILTER, BIAS, kernel=3, engine="DEPTHWISE_3x3,EIGEN"),
    case("two outputs a channel", "Conv", IMAGE, values(8, 1, 3, 3), kernel=3, group=4),
    case("1x1", "Conv", IMAGE, values(6, 4, 1, 1), BIAS, kernel=1),
    case("1x1, stride", "Conv", IMAGE, values(6, 4, 1, 1), BIAS, kernel=1, stride=2),
    case("1x1, group", "Conv", IMAGE, values(6, 2, 1, 1), BIAS, kernel=1, group=2),
    case("two sizes", "Conv", IMAGE, values(6, 4, 3, 2), BIAS, kernel_h=3, kernel_w=2, stride_h=2,
         stride_w=1),
    case("pads by side", "Conv", IMAGE, FILTER, BIAS, kernel=3, pad_t=0, pad_l=1, pad_b=2, pad_r=1),
    case("lists", "Conv", IMAGE, values(6, 4, 3, 2), kernels=[3, 2], strides=[2, 1],
         pads=[1, 0, 2, 1], dilations=[1, 2]),
    case("legacy VALID", "Conv", IMAGE, FILTER, BIAS, kernel=3, legacy_pad=1),
    case("legacy SAME", "Conv", IMAGE, FILTER, BIAS, kernel=3, stride=2, legacy_pad=2),
    case("legacy Caffe", "Conv", IMAGE, FILTER, BIAS, kernel=3, stride=2, legacy_pad=3),
    case("one dimension", "Conv", LINE, values(6, 4, 3), BIAS, kernels=[3], strides=[2],
         pads=[1, 1]),
    case("three dimensions", "Conv", VOLUME, values(3, 2, 2, 3, 2), values(3), kernels=[2, 3, 2],
         pads=[1, 1, 0, 1, 1, 0]),
    case("three dimensions, uneven", "Conv", VOLUME, values(3, 2, 2, 2, 2), kernels=[2] * 3,
         pads=[0, 1, 0, 1, 0, 1], strides=[2, 1, 2]),
    case("three dimensions, group", "Conv", VOLUME, values(4, 1, 2, 2, 2), kernels=[2] * 3,
         group=2),
    case("NHWC", "Conv", NHWC, values(6, 3, 3, 4), BIAS, kernel=3, stride=2, pad=1, order="NHWC"),
    case("NHWC 1x1", "Conv", NHWC, values(6, 1, 1, 4), BIAS, kernel=1, order="NHWC"),
    case("NHWC, group", "Conv", NHWC, values(6, 3, 3, 2), BIAS, kernel=3, group=2, order="NHWC"),
    case("NHWC, depthwise", "Conv", NHWC, values(4, 3, 3, 1), kernel=3, group=4, order="NHWC"),
    case("NHWC, uneven", "Conv", NHWC, values(6, 3, 3, 4), kernel=3, pads=[0, 1, 2, 1],
         order="NHWC"),
    case("NHWC, dilation", "Conv", NHWC, values(6, 3, 3, 4), kernel=3, dilation=2, order="NHWC"),
    case("NHWC, one dimension", "Conv", values(2, 9, 4), values(6, 3, 4), kernels=[3],
         order="NHWC"),
    case("NHWC, three dimensions", "Conv", values(1, 4, 5, 6, 2), values(3, 2, 2, 2, 2),
         kernels=[2] * 3, order="NHWC"),
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
    case("no bias", "ConvGradient", IMAGE, FILTER, values(2, 6, 5, 4), outputs=2, kernel=3,
         no_bias=1),
    case("filter only", "ConvGradient", IMAGE, FILTER, values(2, 6, 5, 4), outputs=1, kernel=3,
         no_bias=1),
    case("stride and pads", "ConvGradient", IMAGE, FILTER, values(2, 6, 4, 3), outputs=3, kernel=3,
         stride=2, pad=1),
    case("uneven", "ConvGradient", IMAGE, FILTER, values(2, 6, 7, 6), outputs=3, kernel=3,
         pads=[2, 1, 0, 1]),
    case("group", "ConvGradient", IMAGE, values(6, 2, 3, 3), values(2, 6, 5, 4), outputs=3,
         kernel=3, group=2),
    case("NHWC", "ConvGradient", NHWC, values(6, 3, 3, 4), values(2, 5, 4, 6), outputs=3, kernel=3,
         order="NHWC"),
    case("one dimension", "ConvGradient", LINE, values(6, 4, 3), values(2, 6, 7), outputs=3,
         kernels=[3]),
    case("three dimensions", "ConvGradient", VOLUME, values(3, 2, 2, 2, 2), values(1, 3, 4, 3, 5),
         outputs=3, kernels=[2] * 3),
    # Transposed.
    case("kernel", "ConvTranspose", IMAGE, values(4, 3, 3, 3), values(3), kernel=3),
    case("no bias", "ConvTranspose", IMAGE, values(4, 3, 3, 3), kernel=3),
    case("stride and pad", "ConvTranspose", IMAGE, values(4, 3, 3, 3), values(3), kernel=3,
         stride=2, pad=1),
    case("adj", "ConvTranspose", IMAGE, values(4, 3, 3, 3), values(3), kernel=3, stride=2, pad=1,
         adj=1),
    case("adj too large", "ConvTranspose", IMAGE, values(4, 3, 3, 3), kernel=3, adj=2),
    case("two sizes", "ConvTranspose", IMAGE, values(4, 3, 2, 3), values(3), kernel_h=2, kernel_w=3,
         stride_h=1, stride_w=2, adj_h=0, adj_w=1),
    case("uneven", "ConvTranspose", IMAGE, values(4, 3, 3, 3), values(3), kernel=3, stride=2,
         pads=[0, 1, 1, 2]),
    case("uneven, adj", "ConvTranspose", IMAGE, values(4, 3, 3, 3), kernel=3, stride=2,
         pads=[0, 1, 1, 2], adj=1),
    case("lists", "ConvTranspose", IMAGE, values(4, 3, 3, 2), kernels=[3, 2], strides=[2, 1],
         adjs=[1, 0]),
    case("group", "ConvTranspose", IMAGE, values(4, 3, 3, 3), values(6), kernel=3, group=2),
    case("NHWC", "ConvTranspose", NHWC, values(4, 3, 3, 3), values(3), kernel=3, stride=2,
         order="NHWC"),
    case("NHWC, adj", "ConvTranspose", NHWC, values(4, 3, 2, 5), values(5), kernel_h=3, kernel_w=2,
         stride=2, adj=1, order="NHWC"),
    case("nothing left", "ConvTranspose", values(1, 4, 1, 1), values(4, 3, 2, 2), kernel=2, pad=1),
    case("legacy SAME", "ConvTranspose", IMAGE, values(4, 3, 3, 3), kernel=3, legacy_pad=2),
    case("channels differ", "ConvTranspose", IMAGE, values(3, 3, 3, 3), kernel=3),
    case("no images", "ConvTranspose", np.zeros((0, 4, 3, 3), np.float32), values(4, 3, 3, 3),
         kernel=3),
    case("all", "ConvTransposeGradient", IMAGE, values(4, 3, 3, 3), values(2, 3, 9, 8), outputs=3,
         kernel=3),
    case("adj", "ConvTransposeGradient", IMAGE, values(4, 3, 3, 3), values(2, 3, 14, 12), outputs=3,
         kernel=3, stride=2, pad=1, adj=1),
    case("no bias", "ConvTransposeGradient", IMAGE, values(4, 3, 3, 3), values(2, 3, 9, 8),
         outputs=2, kernel=3, no_bias=1),
]
# fmt: on
