# SPDX-License-Identifier: Apache-2.0
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]

def kept(boxes: Floats, order: Numbers, threshold: float, most: int, plus_one: bool) -> int: ...
def best_of_classes(
    scores: Floats,
    boxes: Floats,
    first_score: int,
    first_box: int,
    smallest: float,
    threshold: float,
    limit: int,
    plus_one: bool,
    found: Numbers,
    counts: Numbers,
    softly: tuple[bool, float, float] | None = None,
) -> int: ...
def gather(
    scores: Floats,
    boxes: Floats,
    first_score: int,
    first_box: int,
    found: Numbers,
    counts: Numbers,
    first_class: int,
    out_scores: Floats,
    out_boxes: Floats,
    out_classes: Floats,
    out_rows: NDArray[np.int32] | None = None,
) -> None: ...
