# SPDX-License-Identifier: Apache-2.0
"""Operators that look up elements: Unique, Find, FindDuplicateElements, IsMemberOf."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.strings import as_bytes
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS, INTS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("Unique")
class Unique(TorchOperator):
    """The unique elements, sorted; output 1: the index of each element among them, int32."""

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        enforce(x.dim() == 1, "Input 0 must have one dimension.")
        values, places = torch.unique(x, return_inverse=True)
        self.put(0, values)
        if self.OutputSize() > 1:
            self.put(1, places.int())


@register_operator("Find")
class Find(TorchOperator):
    """The last index in input 0 of each element of input 1, or `missing_value` (-1)."""

    def RunOnDevice(self) -> None:
        x = self.x(0, INTS)
        needles = self.x(1, (self.Input(0).dtype(),))
        missing = self.GetSingleArgument("missing_value", -1)
        places = {value: i for i, value in enumerate(x.reshape(-1).tolist())}
        found = [places.get(one, missing) for one in needles.reshape(-1).tolist()]
        self.put(0, torch.tensor(found, dtype=x.dtype).reshape(needles.shape))


@register_operator("FindDuplicateElements")
class FindDuplicateElements(TorchOperator):
    """The indices of elements that occurred before."""

    def RunOnDevice(self) -> None:
        enforce(self.Input(0).dim() == 1, "Input 0 must have one dimension.")
        items = self.strings(0) if self.has_strings(0) else self.x(0, (*FLOATS, *INTS)).tolist()
        seen: set[Any] = set()
        again = []
        for i, item in enumerate(items):
            if item in seen:
                again.append(i)
            seen.add(item)
        self.put(0, torch.tensor(again, dtype=torch.int64))


@register_operator("IsMemberOf")
class IsMemberOf(TorchOperator):
    """Whether each element is one of the argument `value`."""

    def RunOnDevice(self) -> None:
        values = self.GetRepeatedArgument("value")
        if self.HasArgument("dtype"):
            given = type_of_argument(self.GetSingleArgument("dtype"), "dtype")
            # As in Caffe2, values of another type equal none of the elements.
            values = values if given is self.Input(0).dtype() else []
        if self.has_strings(0):
            wanted = {as_bytes(one) for one in values}
            found = torch.tensor([one in wanted for one in self.strings(0)], dtype=torch.bool)
            self.put(0, found.reshape(torch.Size(self.Input(0).sizes())))
            return
        x = self.x(0, (*INTS, c10.bool))
        self.put(0, torch.isin(x.long(), torch.tensor(values, dtype=torch.int64)))
