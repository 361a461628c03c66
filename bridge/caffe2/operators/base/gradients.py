# SPDX-License-Identifier: Apache-2.0
"""Values that have another gradient than torch gives them: that of Caffe2.

A tensor minus its own values is 0 and has its gradient. Of infinite elements the difference would
be NaN.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["gradient_alone", "with_gradient"]


def gradient_alone(x: Tensor) -> Tensor:
    """Return 0 with the gradient of `x`; infinite elements as they are.

    To be added to values that are those of `x`: the sum is as large, then, too.
    """
    return torch.where(torch.isinf(x), x, x - x.detach())


def with_gradient(values: Tensor, x: Tensor) -> Tensor:
    """Return `values`, which have no gradient, with that of `x`: none of infinite elements."""
    finite = torch.nan_to_num(x)
    return values + (finite - finite.detach())
