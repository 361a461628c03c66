# SPDX-License-Identifier: Apache-2.0
"""BoxOperator: the base class of operators on boxes."""

from __future__ import annotations

import numpy as np

from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.boxes import boxes as box
from bridge.caffe2.operators.boxes import rotated_boxes as rotated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

__all__ = ["BoxOperator"]


class BoxOperator(FloatOperator):
    """An operator on boxes, as NumPy arrays with one box per row.

    Argument: `legacy_plus_one` (True): a box includes its last pixel, so its width is x2 - x1 + 1.
    With `rotated` (False) a box has five numbers, as in `rotated_boxes`. Their angles are kept
    within `angle_bound_lo` (-90) to `angle_bound_hi` (90) degrees if `angle_bound_on` (True), and
    boxes turned by at most `clip_angle_thresh` (1.0) degrees are clipped to the image.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.plus_one = bool(self.GetSingleArgument("legacy_plus_one", True))
        self.sides = 5 if self.GetSingleArgument("rotated", False) else 4

    def transformed(
        self, boxes: NDArray[np.float32], deltas: NDArray[np.float32], weights: Sequence[float]
    ) -> NDArray[np.float32]:
        """Return boxes moved and resized, and turned if they are rotated, by deltas."""
        if boxes.shape[1] == 4:
            return box.transformed(boxes, deltas, weights, self.plus_one)
        bounds = None
        if self.GetSingleArgument("angle_bound_on", True):
            bounds = (
                self.GetSingleArgument("angle_bound_lo", -90),
                self.GetSingleArgument("angle_bound_hi", 90),
            )
            period = bounds[1] - bounds[0]
            self.enforce(
                period > 0 and period % 180 == 0,
                "angle bounds are a multiple of 180 apart",
                *bounds,
            )
        return rotated.transformed(boxes, deltas, weights, bounds)

    def clipped(self, boxes: NDArray[np.float32], height: int, width: int) -> NDArray[np.float32]:
        """Return boxes clipped to an image."""
        if boxes.shape[1] == 4:
            return box.clipped(boxes, height, width, self.plus_one)
        threshold = self.GetSingleArgument("clip_angle_thresh", 1.0)
        return rotated.clipped(boxes, height, width, threshold, self.plus_one)

    def array(self, i: int, *shape: int | None) -> NDArray[np.float32]:
        """Return input `i` as an array over its memory.

        Raises EnforceNotMet: its sizes are not `shape`, in which None is any size.
        """
        found: NDArray[np.float32] = self.x(i).numpy()
        fits = len(shape) == found.ndim and all(
            size is None or size == own for size, own in zip(shape, found.shape, strict=True)
        )
        self.enforce(fits, f"input {i} has the sizes {list(shape)} (None: any size)", found)
        return found

    def store(self, i: int, values: Sequence[Any] | NDArray[Any], *shape: int) -> None:
        """Set output `i` to values with the sizes `shape`, as float32."""
        self.out(i, shape).numpy()[...] = np.asarray(values, np.float32).reshape(shape)
