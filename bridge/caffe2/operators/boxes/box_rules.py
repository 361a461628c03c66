# SPDX-License-Identifier: Apache-2.0
"""BoxRules: the arguments that operators on boxes have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.operators.base.checks import require

LARGEST_GROWTH = float(np.log(np.float32(1000 / 16)))  # of the logarithm of a side


class BoxRules:
    """The rules of a box.

    Arguments: `legacy_plus_one` (True): a box includes its last pixel, so its width is x2 - x1 + 1.
    With `rotated` (False) a box has five numbers, as in `rotated_boxes`. Their angles are kept
    within `angle_bound_lo` (-90) to `angle_bound_hi` (90) degrees if `angle_bound_on` (True), and
    boxes turned by at most `clip_angle_thresh` (1.0) degrees are clipped to the image.
    """

    takes = (
        "bool angle_bound_on, int angle_bound_lo, int angle_bound_hi, "
        "bool legacy_plus_one, bool rotated, float clip_angle_thresh"
    )

    def __init__(self, arguments: Arguments) -> None:
        self.plus_one = bool(arguments.single("legacy_plus_one", True))
        self.sides = 5 if arguments.single("rotated", False) else 4
        bounds = arguments.single("angle_bound_lo", -90), arguments.single("angle_bound_hi", 90)
        self.bounds = bounds if arguments.single("angle_bound_on", True) else None
        self.clip_angle: float = arguments.single("clip_angle_thresh", 1.0)

    def angle_bounds(self) -> tuple[int, int] | None:
        """Return the least and the greatest angle of rotated boxes, or None.

        Raises EnforceNotMet: they are not a multiple of 180 apart.
        """
        if self.bounds is not None:
            low, high = self.bounds
            apart = high > low and (high - low) % 180 == 0
            require(apart, "angle bounds are a multiple of 180 apart", low, high)
        return self.bounds


def array_of(what: str, x: Tensor, *shape: int | None) -> NDArray[np.float32]:
    """Return an input as an array, over its memory if it is on the CPU.

    Raises EnforceNotMet: its sizes are not `shape`, in which None is any size.
    """
    fits = len(shape) == x.dim() and all(
        size is None or size == own for size, own in zip(shape, x.shape, strict=True)
    )
    require(fits, f"{what} have the sizes {list(shape)} (None: any size)", x)
    return x.detach().cpu().contiguous().numpy()


def tensor_of(values: NDArray[Any], like: Tensor) -> Tensor:
    """Return an array as a tensor on the device of `like`; on the CPU over the array's memory."""
    made: Tensor = torch.from_numpy(values)
    return made if like.is_cpu else made.to(like.device)


def by_score(scores: NDArray[np.float32], most: int = -1) -> NDArray[np.intp]:
    """Return the indices of the scores in descending order, at most `most` if not negative."""
    order = np.argsort(-scores, kind="stable")
    return order if most < 0 else order[:most]
