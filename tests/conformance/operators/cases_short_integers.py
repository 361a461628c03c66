# SPDX-License-Identifier: Apache-2.0
"""Rows of uint16, with which torch does not compute."""

from __future__ import annotations

import numpy as np

from .case import Case, case


def halves(*items: int) -> np.ndarray:
    return np.array(items, np.uint16)


def mask(*items: int) -> np.ndarray:
    return np.array(items, bool)


CASES: list[Case] = [
    case("uint16", "BooleanUnmask", mask(1, 0, 0), halves(65535), mask(0, 1, 1), halves(2, 3)),
    case(
        "uint16",
        "LengthsGather",
        halves(1, 2, 3, 40000, 5, 6),
        np.array([1, 2, 3], np.int32),
        np.array([2, 0], np.int64),
    ),
    case("Histogram too few", "Histogram", np.ones(3, np.float32), bin_edges=[1.0]),
]
