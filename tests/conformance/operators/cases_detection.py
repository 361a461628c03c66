# SPDX-License-Identifier: Apache-2.0
"""Boxes and regions of object detection."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case

_random = np.random.RandomState(29)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def scores(*shape: int) -> np.ndarray:
    """Scores of which no two are the same."""
    count = int(np.prod(shape))
    return (_random.permutation(count) / count).reshape(shape).astype(np.float32)


def boxes(count: int, size: float = 50.0, classes: int = 1) -> np.ndarray:
    low = _random.uniform(0, size, (count, classes, 2))
    high = low + _random.uniform(1, size, (count, classes, 2))
    return np.concatenate([low, high], axis=2).reshape(count, -1).astype(np.float32)


def numbered(found: np.ndarray, *numbers: int) -> np.ndarray:
    column = np.resize(np.sort(np.array(numbers, np.float32)), len(found))
    return np.concatenate([np.sort(column)[:, None], found], axis=1).astype(np.float32)


def array(*rows: Any) -> np.ndarray:
    return np.array(rows, np.float32)


ANCHORS = array([-8, -8, 8, 8], [-16, -8, 16, 8], [-8, -16, 8, 16])
IMAGE = values(2, 3, 10, 12)
REGIONS = numbered(boxes(6, 60.0), 0, 1)
ROTATED = np.concatenate(
    [
        _random.uniform(10, 50, (5, 2)),
        _random.uniform(5, 40, (5, 2)),
        _random.uniform(-90, 90, (5, 1)),
    ],
    axis=1,
).astype(np.float32)
SIZES = {"spatial_scale": 0.125, "pooled_h": 3, "pooled_w": 2}


def proposals(name: str, images: int, info: np.ndarray, **args: Any) -> Case:
    return case(
        name,
        "GenerateProposals",
        scores(images, 3, 4, 5),
        0.3 * values(images, 12, 4, 5),
        info,
        ANCHORS,
        outputs=2,
        **args,
    )


# fmt: off
CASES: list[Case] = [
    proposals("one image", 1, array([64, 80, 1])),
    proposals("two images", 2, array([64, 80, 1], [60, 70, 1.5]), min_size=0.0),
    proposals("few before", 1, array([64, 80, 1]), pre_nms_topN=20, min_size=4.0),
    proposals("few after", 1, array([64, 80, 1]), post_nms_topN=5, nms_thresh=0.5),
    proposals("small scale", 1, array([32, 40, 1]), spatial_scale=0.125, min_size=1.0),
    proposals("without plus one", 1, array([64, 80, 1]), legacy_plus_one=False, min_size=2.0),
    proposals("all too small", 1, array([64, 80, 1]), min_size=500.0),
    case("plain", "BBoxTransform", boxes(5), 0.3 * values(5, 8), array([100, 90, 1])),
    case("numbered", "BBoxTransform", numbered(boxes(5), 0, 1), 0.3 * values(5, 8),
         array([100, 90, 1], [50, 60, 2]), outputs=2),
    case("weights", "BBoxTransform", boxes(5), values(5, 4), array([100, 90, 1.6]),
         weights=[10.0, 10.0, 5.0, 5.0], apply_scale=False),
    case("without plus one", "BBoxTransform", boxes(5), values(5, 4), array([100, 90, 1.6]),
         legacy_plus_one=False),
    case("large deltas", "BBoxTransform", boxes(4), 9 * values(4, 4), array([100, 90, 1])),
    case("other counts", "BBoxTransform", boxes(5), values(4, 4), array([100, 90, 1])),
    *[
        case(name, "BoxWithNMSLimit", scores(12, 3), boxes(12, 20.0, 3), outputs=outputs, **args)
        for name, outputs, args in (
            ("plain", 3, {}),
            ("all outputs", 6, {}),
            ("few", 6, {"detections_per_im": 5}),
            ("thresholds", 3, {"score_thresh": 0.5, "nms": 0.6}),
            ("soft", 6, {"soft_nms_enabled": True}),
            ("soft, few", 6, {"soft_nms_enabled": True, "detections_per_im": 7, "nms": 0.5}),
            ("soft, gaussian", 3, {"soft_nms_enabled": True, "soft_nms_method": "gaussian"}),
            (
                "soft, sigma",
                3,
                {
                    "soft_nms_enabled": True,
                    "soft_nms_method": "gaussian",
                    "soft_nms_sigma": 0.1,
                    "soft_nms_min_score_thres": 0.2,
                },
            ),
            ("strange method", 3, {"soft_nms_enabled": True, "soft_nms_method": "cubic"}),
            ("without plus one", 3, {"legacy_plus_one": False}),
            ("without background out", 3, {"output_classes_include_bg_cls": False}),
            ("nothing", 6, {"score_thresh": 2.0}),
        )
    ],
    case("two images", "BoxWithNMSLimit", scores(12, 3), boxes(12, 20.0, 3), array(7, 5),
         outputs=6),
    case("without background in", "BoxWithNMSLimit", scores(12, 3), boxes(12, 20.0, 2), outputs=3,
         input_boxes_include_bg_cls=False),
    case("agnostic", "BoxWithNMSLimit", scores(12, 3), boxes(12, 20.0), outputs=3,
         cls_agnostic_bbox_reg=True),
    case("other counts", "BoxWithNMSLimit", scores(12, 3), boxes(12, 20.0, 2), outputs=3),
    case("plain", "CollectRpnProposals", numbered(boxes(4), 0), numbered(boxes(3), 0), scores(4),
         -scores(3) + 0.55, rpn_min_level=2, rpn_max_level=3),
    case("few", "CollectRpnProposals", numbered(boxes(4), 0), numbered(boxes(3), 0), scores(4),
         -scores(3) + 0.55, rpn_min_level=2, rpn_max_level=3, rpn_post_nms_topN=3),
    case("plain", "DistributeFpnProposals", numbered(boxes(9, 600.0), 0, 1), outputs=5),
    case("levels", "DistributeFpnProposals", numbered(boxes(9, 400.0), 0, 1), outputs=4,
         roi_min_level=3, roi_max_level=5, roi_canonical_scale=100, roi_canonical_level=3),
    case("plain", "CollectAndDistributeFpnRpnProposals", numbered(boxes(6, 400.0), 0),
         numbered(boxes(3, 400.0), 0), scores(6), -scores(3) + 0.55, outputs=6, rpn_min_level=2,
         rpn_max_level=3, rpn_post_nms_topN=8),
    *[
        case(name, "RoIAlign", IMAGE, REGIONS, **{**SIZES, **args})
        for name, args in (
            ("plain", {}),
            ("sampling_ratio", {"sampling_ratio": 2}),
            ("sampling_ratio 0", {"sampling_ratio": 0}),
            ("aligned", {"aligned": True}),
            ("aligned, sampling_ratio", {"aligned": True, "sampling_ratio": 3}),
            ("whole scale", {"spatial_scale": 1.0, "pooled_h": 7, "pooled_w": 7}),
        )
    ],
    case("of one image", "RoIAlign", IMAGE[:1], boxes(4, 60.0), **SIZES),
    case("NHWC", "RoIAlign", values(2, 10, 12, 3), REGIONS, order="NHWC", **SIZES),
    case("no regions", "RoIAlign", IMAGE, np.zeros((0, 5), np.float32), **SIZES),
    case("outside", "RoIAlign", IMAGE, array([0, -50, -60, -20, 20], [1, 80, 90, 200, 300]),
         **SIZES),
    case("inverted", "RoIAlign", IMAGE, array([0, 52, 61, 20, 20]), **SIZES),
    case("plain", "RoIAlignGradient", IMAGE, REGIONS, values(6, 3, 3, 2), **SIZES),
    case("aligned", "RoIAlignGradient", IMAGE, REGIONS, values(6, 3, 3, 2), aligned=True,
         sampling_ratio=2, **SIZES),
    case("plain", "RoIAlignRotated", IMAGE, numbered(ROTATED, 0, 1), **SIZES),
    case("sampling_ratio", "RoIAlignRotated", IMAGE, numbered(ROTATED, 0, 1), sampling_ratio=2,
         **SIZES),
    case("aligned", "RoIAlignRotated", IMAGE[:1], ROTATED, aligned=True, **SIZES),
    case("test", "RoIPool", IMAGE, REGIONS, is_test=1, **SIZES),
    case("training", "RoIPool", IMAGE, REGIONS, outputs=2, is_test=0, **SIZES),
    case("many bins", "RoIPool", IMAGE, REGIONS, outputs=2, is_test=0, spatial_scale=0.125,
         pooled_h=7, pooled_w=7),
]
# fmt: on
