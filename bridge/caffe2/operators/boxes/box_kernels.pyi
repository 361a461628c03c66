# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

import numpy as np
from numpy.typing import NDArray

def best_of_classes(
    scores: NDArray[np.float32],
    boxes: NDArray[np.float32],
    first_score: int,
    first_box: int,
    smallest: float,
    threshold: float,
    limit: int,
    plus_one: bool,
    found: NDArray[np.int64],
    counts: NDArray[np.int64],
    softly: tuple[bool, float, float] | None = None,
) -> None: ...
def count_boxes(
    counts: Any, boxes: Any, n: int, columns: int, images: int, numbered: bool
) -> Any: ...
def transform_boxes(
    made: Any,
    counts: Any,
    boxes: Any,
    deltas: Any,
    images: Any,
    n: int,
    columns: int,
    width: int,
    count: int,
    weights: list[float],
    largest_growth: float,
    apply_scale: bool,
    plus_one: bool,
) -> Any: ...
def propose(
    scores: NDArray[np.float32],
    deltas: NDArray[np.float32],
    image: NDArray[np.float32],
    anchors: NDArray[np.float32],
    stride: float,
    before: int,
    after: int,
    smallest: float,
    threshold: float,
    largest_growth: float,
    plus_one: bool,
    number: float,
    out_boxes: NDArray[np.float32],
    out_scores: NDArray[np.float32],
) -> int: ...
