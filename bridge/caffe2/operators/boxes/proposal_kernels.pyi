# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import numpy as np
from numpy.typing import NDArray

def transform_boxes(
    boxes: _Floats,
    deltas: _Floats,
    weights: _Floats,
    scale: float,
    height: int,
    width: int,
    largest_growth: float,
    apply_scale: bool,
    plus_one: bool,
    out: _Floats,
) -> None: ...
def propose(
    scores: _Floats,
    deltas: _Floats,
    image: _Floats,
    anchors: _Floats,
    stride: float,
    before: int,
    after: int,
    smallest: float,
    threshold: float,
    largest_growth: float,
    plus_one: bool,
    number: float,
    out_boxes: _Floats,
    out_scores: _Floats,
) -> int: ...

_Floats = NDArray[np.float32]
