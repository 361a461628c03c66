# SPDX-License-Identifier: Apache-2.0
"""FillSizes: the sizes of a fill."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.operators.base.checks import require

# The common parts of the declarations of fills. Input 0 says the sizes, whatever its elements.
FILL: dict[str, Any] = {
    "inplace": "0>0",
    "gradient": "none",
    "types": None,
    "on_host": ("x",),
    "rearranges": (),
}


class FillSizes:
    """The sizes of an output. They are

    - without inputs: the argument `shape`;
    - with an input: the sizes of input 0, followed by the argument `extra_shape`;
    - with `input_as_shape`: the elements of input 0 (int64), followed by `extra_shape`.

    Raises EnforceNotMet: arguments contradict the number of inputs, or `shape` is not a list.
    Follows FillerOp, caffe2/operators/filler_op.h, PyTorch 1.8.1.
    """

    takes = "int[] shape, int[] extra_shape, bool input_as_shape"

    def __init__(self, arguments: Arguments) -> None:
        def given(name: str) -> list[int]:
            return arguments.repeated(name, (0,)) if arguments.has(name) else []

        self.shape, self.extra = shape, extra = given("shape"), given("extra_shape")
        self.by_elements = arguments.single("input_as_shape", False)
        if arguments.inputs:
            require(not shape, "sizes come from the argument shape or an input, not both", shape)
        else:
            require(not extra, "extra_shape is given with an input only", extra)
            require(not self.by_elements, "input_as_shape is given with an input only")
            number = "i" in arguments.fields("shape")
            require(bool(shape) or not number, "shape is a list, as in shape=[2, 3]")

    def of(self, x: Tensor | None) -> list[int]:
        """Return the sizes, where `x` is input 0, or None without inputs.

        Raises EnforceNotMet: `x` does not have the sizes as elements, if it should.
        """
        if x is None:
            return self.shape
        if not self.by_elements:
            return [*x.shape, *self.extra]
        require(x.dtype == torch.int64, "input 0, with input_as_shape, is of type int64", x.dtype)
        require(x.dim() == 1, "input 0, with input_as_shape, has one dimension", x)
        require(x.numel() > 0, "input 0, with input_as_shape, has elements", x)
        sizes: list[int] = x.tolist()
        return sizes + self.extra


def room(sizes: list[int], dtype: Any, device: Any, out: Tensor | None) -> Tensor:
    """Return a tensor to fill: `out` if it has these sizes, which may be the elements of an input.

    Otherwise a new one.
    """
    if out is not None and list(out.shape) == list(sizes):
        return out
    return torch.empty(sizes, dtype=dtype, device=device)
