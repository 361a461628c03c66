# SPDX-License-Identifier: Apache-2.0
"""FloatOperator: the base class of operators that compute in float32."""

from __future__ import annotations

from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.torch_io import operand
from bridge.caffe2.operators.base.checks import FLOAT, axis_from_front
from bridge.caffe2.operators.base.torch_operator import TorchOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from bridge.c10 import TypeMeta

__all__ = ["FloatOperator"]


class FloatOperator(TorchOperator):
    """A TorchOperator whose inputs and outputs are float32 by default."""

    def x(self, i: int, types: Collection[TypeMeta] | None = FLOAT) -> Tensor:
        """Return input `i` as a torch tensor over the same memory, to read; as TorchOperator.x."""
        return super().x(i, types)

    def out(self, i: int, sizes: Sequence[int], dtype: TypeMeta = c10.float32) -> Tensor:
        """Return output `i` as a torch tensor to write; as TorchOperator.out."""
        return operand(self.Output(i, sizes, dtype))

    def enforce(self, condition: bool, requirement: str, *values: Any) -> None:
        """Raise EnforceNotMet unless `condition` holds.

        `requirement` is a clause: "<type> requires that <requirement>; got <values>." Of a tensor
        in `values` the sizes are shown.
        """
        if not condition:
            shown = [list(one.shape) if hasattr(one, "shape") else one for one in values]
            got = f"; got {', '.join(map(str, shown))}" if shown else ""
            raise EnforceNotMet(
                f"{self._definition.type} requires that {requirement}{got}.", self._definition.type
            )

    def enforce_range(self, what: str, values: Tensor, end: int, start: int = 0) -> None:
        """Raise EnforceNotMet unless all integers `values` are in [`start`, `end`)."""
        inside = not values.numel() or (int(values.min()) >= start and int(values.max()) < end)
        if not inside:
            given = values.reshape(-1).tolist()
            self.enforce(False, f"{what} are from {start} to below {end}", given)

    def axis(self, x: Tensor, name: str, default: int) -> int:
        """Return the dimension of `x` in argument `name`, counted from the front."""
        return axis_from_front(self.GetSingleArgument(name, default), x.dim())

    def image_order(self) -> str:
        """Return the argument `order`: NCHW (default) or NHWC."""
        order: str = self.GetSingleArgument("order", "NCHW").upper()
        self.enforce(order in ("NCHW", "NHWC"), "order is NCHW or NHWC", order)
        return order
