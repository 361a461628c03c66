# SPDX-License-Identifier: Apache-2.0
"""Filler: operators that make a tensor of a shape from arguments or from another's shape."""

from __future__ import annotations

from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.base.torch_operator import INT64, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Filler"]


class Filler(TorchOperator):
    """An operator that fills output 0, the sizes of which are

    - argument `shape`, without inputs;
    - those of input 0, followed by argument `extra_shape`;
    - the elements of input 0, int64, where `input_as_shape` is set, followed by the same.

    Follows FillerOp, caffe2/operators/filler_op.h, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._shape = self.GetRepeatedArgument("shape")
        self._extra_shape = self.GetRepeatedArgument("extra_shape")
        self._input_as_shape = self.GetSingleArgument("input_as_shape", False)
        if self.InputSize():
            enforce(
                not self._shape, "The argument shape and an input cannot be given at the same time."
            )
            return
        enforce(not self._extra_shape, "The argument extra_shape is for fills with an input.")
        enforce(not self._input_as_shape, "input_as_shape needs an input.")
        if not self._shape and self.HasSingleArgumentOfType("shape", int):
            raise EnforceNotMet("The argument shape is a list, as in shape=[2, 3], not a number.")

    def sizes(self) -> list[int]:
        """Return the sizes of the output."""
        if not self.InputSize():
            return self._shape
        tensor = self.Input(0)
        if not self._input_as_shape:
            return [*tensor.sizes(), *self._extra_shape]
        enforce(tensor.dim() == 1, "With input_as_shape, input 0 has to have one dimension.")
        enforce(tensor.numel() > 0, "With input_as_shape, input 0 has to have elements.")
        return self.integers(0, INT64) + self._extra_shape

    def fill(self, value: Any, dtype: TypeMeta) -> None:
        """Fill the output with one value, a number or a string."""
        sizes = self.sizes()
        if dtype.is_pod:
            self.out(0, sizes, dtype).fill_(value)
            return
        output = self.Output(0, sizes, dtype)
        output.mutable_data()[:] = [value] * output.numel()
