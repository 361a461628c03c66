# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
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
) -> int: ...
def gather(
    scores: NDArray[np.float32],
    boxes: NDArray[np.float32],
    first_score: int,
    first_box: int,
    found: NDArray[np.int64],
    counts: NDArray[np.int64],
    first_class: int,
    out_scores: NDArray[np.float32],
    out_boxes: NDArray[np.float32],
    out_classes: NDArray[np.float32],
    out_rows: NDArray[np.int32],
) -> None: ...
