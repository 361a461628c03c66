# SPDX-License-Identifier: Apache-2.0
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

def transform_boxes(
    boxes: Floats,
    deltas: Floats,
    weights: Floats,
    scale: float,
    height: int,
    width: int,
    largest_growth: float,
    apply_scale: bool,
    plus_one: bool,
    out: Floats,
) -> None: ...
def propose(
    scores: Floats,
    deltas: Floats,
    image: Floats,
    anchors: Floats,
    stride: float,
    before: int,
    after: int,
    smallest: float,
    threshold: float,
    largest_growth: float,
    plus_one: bool,
    number: float,
    out_boxes: Floats,
    out_scores: Floats,
) -> int: ...
