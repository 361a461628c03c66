# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import numpy as np
from numpy.typing import NDArray

def kept(boxes: _Floats, order: _Numbers, threshold: float, most: int, plus_one: bool) -> int: ...
def best_of_classes(
    scores: _Floats,
    boxes: _Floats,
    first_score: int,
    first_box: int,
    smallest: float,
    threshold: float,
    limit: int,
    plus_one: bool,
    found: _Numbers,
    counts: _Numbers,
    softly: tuple[bool, float, float] | None = None,
) -> int: ...
def gather(
    scores: _Floats,
    boxes: _Floats,
    first_score: int,
    first_box: int,
    found: _Numbers,
    counts: _Numbers,
    first_class: int,
    out_scores: _Floats,
    out_boxes: _Floats,
    out_classes: _Floats,
    out_rows: NDArray[np.int32] | None = None,
) -> None: ...

_Floats = NDArray[np.float32]
_Numbers = NDArray[np.int64]
