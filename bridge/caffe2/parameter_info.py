# SPDX-License-Identifier: Apache-2.0
"""ParameterInfo: what a model knows of a parameter.

Follows caffe2/python/modeling/parameter_info.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import math

from bridge.caffe2.blob_reference import BlobReference

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any, Final

__all__ = ["ParameterInfo", "ParameterTags"]


class ParameterTags:
    """What a parameter is to its model."""

    BIAS: Final = "BIAS"
    WEIGHT: Final = "WEIGHT"
    COMPUTED_PARAM: Final = "COMPUTED_PARAM"


class ParameterInfo:
    """A parameter: `blob`, its `name`, `shape`, number of elements `size`, and gradient `grad`.

    What is not known is None. `optimizer` is the one that the parameter has for itself.
    """

    def __init__(
        self,
        param_id: int | None,
        param: BlobReference,
        key: Any = None,
        shape: list[int] | None = None,
        length: int | None = None,
        grad: Any = None,
        blob_copy: Any = None,
    ) -> None:
        self.param_id = param_id
        self.name = str(param)
        self.blob = param
        self.key = key
        self.shape = shape
        self.size = None if shape is None else math.prod(shape)
        self.length = max(1, length or 1)
        self.grad = grad
        self.blob_copy = blob_copy
        self.optimizer: Any = None
        self.regularizer: Any = None

    @property
    def parameter(self) -> BlobReference:
        """The blob."""
        return self.blob

    def __str__(self) -> str:
        return self.name
