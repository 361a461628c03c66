# SPDX-License-Identifier: Apache-2.0
"""FillOperator: the base class of operators that fill a tensor."""

from __future__ import annotations

from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.base.torch_operator import INT64, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FillOperator"]


class FillOperator(TorchOperator):
    """An operator that fills output 0. Its sizes are

    - without inputs: the argument `shape`;
    - with an input: the sizes of input 0, followed by the argument `extra_shape`;
    - with `input_as_shape`: the elements of input 0 (int64), followed by `extra_shape`.

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
        enforce(not self._extra_shape, "The argument extra_shape needs an input.")
        enforce(not self._input_as_shape, "input_as_shape needs an input.")
        if not self._shape and self.HasSingleArgumentOfType("shape", int):
            raise EnforceNotMet(
                "The argument shape must be a list, as in shape=[2, 3], not a number."
            )

    def sizes(self) -> list[int]:
        """Return the sizes of the output."""
        if not self.InputSize():
            return self._shape
        tensor = self.Input(0)
        if not self._input_as_shape:
            return [*tensor.sizes(), *self._extra_shape]
        enforce(tensor.dim() == 1, "With input_as_shape, input 0 must have one dimension.")
        enforce(tensor.numel() > 0, "With input_as_shape, input 0 must have elements.")
        return self.integers(0, INT64) + self._extra_shape

    def fill(self, value: Any, dtype: TypeMeta) -> None:
        """Fill the output with `value`, a number or a string."""
        sizes = self.sizes()
        if dtype.is_pod:
            self.out(0, sizes, dtype).fill_(value)
            return
        output = self.Output(0, sizes, dtype)
        output.mutable_data()[:] = [value] * output.numel()
