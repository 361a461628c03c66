# SPDX-License-Identifier: Apache-2.0
"""A decorator that registers a function as an elementwise operator."""

from __future__ import annotations

from collections.abc import Callable

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.execution.torch_io import copied_to_out, in_and_out
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.torch_operator import FLOAT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from torch import Tensor

    from bridge.c10 import TypeMeta

__all__ = ["elementwise"]


def elementwise(
    name: str,
    types: Collection[TypeMeta] = FLOAT,
    in_place: Callable[[Tensor], object] | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that registers `compute(op, *inputs, out)` as the operator `name`.

    The inputs have one shape and one of `types`. `out` has the same, and is the memory of an input
    where the operator runs in place: `compute` must not read an input after writing `out`.
    `in_place(x)` computes the same in place, for functions that torch computes faster so; small
    tensors are then copied to the output first.

    The operator raises EnforceNotMet: an input differs from the first one in type or shape.
    """

    def register(compute: Callable[..., None]) -> Callable[..., None]:
        def RunOnDevice(self: FloatOperator) -> None:
            if in_place is not None:
                copied = copied_to_out(self, types)
                if copied is not None:
                    in_place(copied)
                    return
            both = in_and_out(self, types)
            if both is not None:
                compute(self, *both)
                return
            first = self.x(0, types)
            dtype = self.Input(0).dtype()
            others = [self.x(i, (dtype,)) for i in range(1, self.InputSize())]
            for other in others:
                self.enforce(
                    other.numel() == first.numel(), "the inputs have the same shape", other
                )
            inputs = [first, *(one.view(first.shape) for one in others)]
            compute(self, *inputs, self.out(0, first.shape, dtype))

        members = {
            "__doc__": compute.__doc__,
            "__module__": compute.__module__,
            "RunOnDevice": RunOnDevice,
        }
        register_operator(name)(type(name, (FloatOperator,), members))
        return compute

    return register
