# SPDX-License-Identifier: Apache-2.0
"""Labels of sequences, and counts of rows."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(43)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int32)


def repeats() -> np.ndarray:
    """Steps whose best labels come again: 1 1 0 1 2 2."""
    x = np.zeros((6, 2, 3), np.float32)
    for step, label in enumerate((1, 1, 0, 1, 2, 2)):
        x[step, :, label] = 1
    return x


CASES: list[Case] = [
    case("plain", "CTCGreedyDecoder", values(7, 3, 4), outputs=2),
    case("lengths", "CTCGreedyDecoder", values(7, 3, 4), ints(7, 2, 0), outputs=2),
    case("repeats", "CTCGreedyDecoder", repeats(), outputs=2),
    case("repeats kept", "CTCGreedyDecoder", repeats(), outputs=2, merge_repeated=False),
    case("too few lengths", "CTCGreedyDecoder", values(7, 3, 4), ints(7, 2), outputs=2),
    *[case(f"{n}", "ViterbiPath", values(n, 4), values(4, 4)) for n in (2, 5, 9)],
    case("plain", "SwapBestPath", values(5, 4), ints(0, 3, 1, 2, 2)),
    *[
        Case(
            f"RowWiseCounter {half}",
            {
                "last": np.array([3, 0, 9, 5]),
                "count": np.array([1.0, 0, 2.5, 4]),
                "rows": np.array([1, 3, 1]),
                "now": np.array([8]),
            },
            [
                (
                    "RowWiseCounter",
                    ["last", "count", "rows", "now"],
                    ["last", "count"],
                    {"counter_halflife": half},
                )
            ],
        )
        for half in (4, -1)
    ],
]
