# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import numpy as np
from numpy.typing import NDArray

def transform_boxes(
    boxes: NDArray[np.float32],
    deltas: NDArray[np.float32],
    weights: NDArray[np.float32],
    scale: float,
    height: int,
    width: int,
    largest_growth: float,
    apply_scale: bool,
    plus_one: bool,
    out: NDArray[np.float32],
) -> None: ...
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
