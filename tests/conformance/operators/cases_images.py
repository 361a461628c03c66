# SPDX-License-Identifier: Apache-2.0
"""Images padded, resized, cut and summed."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(19)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


IMAGE = values(2, 3, 4, 5)
NHWC = values(2, 4, 5, 3)
SCALES = [(2.0, 2.0), (1.5, 1.7), (0.5, 0.7), (1.0, 3.0), (0.9, 1.1)]


def scales(*factors: float) -> np.ndarray:
    return np.array(factors, np.float32)


CASES: list[Case] = [
    *[
        case(mode + name, "PadImage", image, mode=mode, **args)
        for mode in ("constant", "reflect", "edge")
        for name, image, args in (
            ("", IMAGE, {"pad": 1}),
            (", by side", IMAGE, {"pad_t": 1, "pad_l": 2, "pad_b": 0, "pad_r": 3}),
            (", list", IMAGE, {"pads": [0, 1, 2, 3]}),
            (" NHWC", NHWC, {"pads": [0, 1, 2, 3], "order": "NHWC"}),
        )
    ],
    case("value", "PadImage", IMAGE, pad=1, value=2.5),
    case("value NHWC", "PadImage", NHWC, pad=1, value=2.5, order="NHWC"),
    case("no pads", "PadImage", IMAGE),
    case("strange mode", "PadImage", IMAGE, pad=1, mode="wrap"),
    case("stride", "PadImage", IMAGE, pad=1, stride=2),
    *[
        case(mode + name, "PadImageGradient", values(*shape), mode=mode, **args)
        for mode in ("constant", "reflect", "edge")
        for name, shape, args in (
            ("", (2, 3, 6, 7), {"pad": 1}),
            (", list", (2, 3, 6, 9), {"pads": [0, 1, 2, 3]}),
            (" NHWC", (2, 6, 9, 3), {"pads": [0, 1, 2, 3], "order": "NHWC"}),
        )
    ],
    *[
        case(name, "Im2Col", image, **args)
        for name, image, args in (
            ("plain", IMAGE, {"kernel": 2}),
            ("stride and pad", IMAGE, {"kernel": 3, "stride": 2, "pad": 1}),
            ("dilation", IMAGE, {"kernel": 2, "dilation": 2}),
            ("two sizes", IMAGE, {"kernel_h": 2, "kernel_w": 3, "stride_h": 1, "stride_w": 2}),
            ("NHWC", NHWC, {"kernel": 3, "stride": 2, "pad": 1, "order": "NHWC"}),
            ("NHWC, dilation", NHWC, {"kernel": 2, "dilation": 2, "order": "NHWC"}),
            ("too large", IMAGE, {"kernel": 6}),
            ("no kernel", IMAGE, {}),
        )
    ],
    case("plain", "Col2Im", values(2, 12, 3, 4), IMAGE, kernel=2),
    case("stride and pad", "Col2Im", values(2, 27, 2, 3), IMAGE, kernel=3, stride=2, pad=1),
    case("NHWC", "Col2Im", values(2, 2, 3, 27), NHWC, kernel=3, stride=2, pad=1, order="NHWC"),
    case("other size", "Col2Im", values(2, 12, 3, 3), IMAGE, kernel=2),
    *[case(f"{h} {w}", "ResizeNearest", IMAGE, height_scale=h, width_scale=w) for h, w in SCALES],
    case("input", "ResizeNearest", IMAGE, scales(1.5, 2.0)),
    case("NHWC", "ResizeNearest", NHWC, height_scale=1.5, width_scale=0.7, order="NHWC"),
    case("scale of zero", "ResizeNearest", IMAGE, height_scale=0.0),
    case("one scale", "ResizeNearest", IMAGE, scales(2.0)),
    *[
        case(
            f"{h} {w}",
            "ResizeNearestGradient",
            values(2, 3, int(4 * h), int(5 * w)),
            IMAGE,
            height_scale=h,
            width_scale=w,
        )
        for h, w in SCALES[:4]
    ],
    case(
        "NHWC",
        "ResizeNearestGradient",
        values(2, 8, 10, 3),
        NHWC,
        height_scale=2.0,
        width_scale=2.0,
        order="NHWC",
    ),
    case("input", "ResizeNearestGradient", values(2, 3, 6, 10), IMAGE, scales(1.5, 2.0)),
    *[
        case(
            f"{t}",
            "ResizeNearest3D",
            values(1, 2, 3, 4, 2),
            temporal_scale=t,
            height_scale=2.0,
            width_scale=2.0,
        )
        for t in (1.0, 1.5, 2.0)
    ],
    case(
        "other scales",
        "ResizeNearest3D",
        values(1, 2, 3, 4, 2),
        temporal_scale=2.0,
        height_scale=1.5,
        width_scale=0.5,
    ),
    case(
        "NHWC",
        "ResizeNearest3D",
        values(1, 3, 4, 2, 2),
        temporal_scale=2.0,
        height_scale=2.0,
        width_scale=2.0,
        order="NHWC",
    ),
    *[
        case(
            f"{t}",
            "ResizeNearest3DGradient",
            values(1, 2, int(3 * t), 8, 4),
            values(1, 2, 3, 4, 2),
            temporal_scale=t,
            height_scale=2.0,
            width_scale=2.0,
        )
        for t in (1.0, 2.0)
    ],
    *[
        case(f"{h} {w}", "UpsampleBilinear", IMAGE, height_scale=h, width_scale=w)
        for h, w in SCALES
    ],
    case("input", "UpsampleBilinear", IMAGE, scales(1.5, 2.0)),
    *[
        case(
            f"{h} {w}",
            "UpsampleBilinearGradient",
            values(2, 3, int(4 * h), int(5 * w)),
            IMAGE,
            height_scale=h,
            width_scale=w,
        )
        for h, w in SCALES[:2]
    ],
    case("input", "UpsampleBilinearGradient", values(2, 3, 6, 10), IMAGE, scales(1.5, 2.0)),
    case("plain", "SpaceToBatch", values(2, 3, 4, 6)),
    case("block 3", "SpaceToBatch", values(1, 2, 6, 3), block_size=3),
    case("pad", "SpaceToBatch", values(2, 3, 4, 6), pad=1),
    case("pad_t", "SpaceToBatch", values(2, 3, 3, 4), pad_t=1),
    case("not divisible", "SpaceToBatch", values(2, 3, 3, 4)),
    case("plain", "BatchToSpace", values(8, 3, 2, 3)),
    case("block 3", "BatchToSpace", values(9, 2, 2, 1), block_size=3),
    case("pad", "BatchToSpace", values(8, 3, 2, 3), pad=1),
    case("plain", "IntegralImage", IMAGE),
    case("plain", "IntegralImageGradient", IMAGE, values(2, 3, 5, 6)),
]
