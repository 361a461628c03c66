# SPDX-License-Identifier: Apache-2.0
"""Detectron's operators, as far as Caffe2 computes them on the CPU."""

from __future__ import annotations

import numpy as np

from .case import case

_random = np.random.RandomState(37)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


CASES = [
    case("default", "UpsampleNearest", values(2, 3, 4, 5)),
    case("three dimensions", "UpsampleNearest", values(3, 4, 5), scale=3),
    case("scale 1", "UpsampleNearest", values(1, 2, 3, 2), scale=1),
    case("scale 4", "UpsampleNearest", values(1, 1, 3, 2), scale=4),
    case("empty", "UpsampleNearest", values(0, 2, 3, 2)),
    case("of doubles", "UpsampleNearest", values(1, 2, 3, 2).astype(np.float64)),
]
