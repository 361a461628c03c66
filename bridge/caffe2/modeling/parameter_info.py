# SPDX-License-Identifier: Apache-2.0
"""ParameterInfo: the facts that a model stores of each parameter."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.annotation import Any, Final
from bridge.c10.errors import EnforceAssertionError

__all__ = ["ParameterInfo", "ParameterTags"]


class ParameterTags:
    """The roles of a parameter in its model."""

    BIAS: Final = "BIAS"
    WEIGHT: Final = "WEIGHT"
    COMPUTED_PARAM: Final = "COMPUTED_PARAM"


class ParameterInfo:
    """A parameter: its blob, its shape, its size in elements, and its gradient.

    `shape` and `size` are None if they are not known. `grad` is a `GradientSlice` if the gradient
    is sparse, and None if the parameter has no gradient, or none yet. `optimizer`, which can be
    set once, updates this parameter in place of the model's optimizer.

    Follows ParameterInfo, caffe2/python/modeling/parameter_info.py, PyTorch 1.8.1.
    """

    def __init__(
        self,
        param_id: Any,
        param: Any,
        key: Any = None,
        shape: Sequence[int] | None = None,
        length: int | None = None,
        grad: Any = None,
        blob_copy: Any = None,
    ) -> None:
        self.param_id = param_id
        self.name = str(param)
        self.blob = param
        self.key = key
        self.shape = shape
        self.size: int | None = None
        if shape is not None:
            self.size = 1
            for one in shape:
                self.size *= one
        self.length = max(1, length if length is not None else 1)
        self.grad = grad
        self.blob_copy = blob_copy
        self._optimizer: Any = None
        self.regularizer: Any = None

    @property
    def parameter(self) -> Any:
        """The blob."""
        return self.blob

    @property
    def optimizer(self) -> Any:
        """The optimizer of this parameter alone, or None."""
        return self._optimizer

    @optimizer.setter
    def optimizer(self, value: Any) -> None:
        if self._optimizer is not None:
            raise EnforceAssertionError(
                f"Parameter {self.name!r} already has an optimizer.",
                "ParameterInfo",
                condition="optimizer is None",
            )
        self._optimizer = value

    def __str__(self) -> str:
        return self.name
