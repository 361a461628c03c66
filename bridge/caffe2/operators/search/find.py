# SPDX-License-Identifier: Apache-2.0
"""Operators that look up elements: Unique, Find, FindDuplicateElements, IsMemberOf."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.strings import as_bytes
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS, INTS, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__: list[str] = []


@operator("Unique", types=INTS, gradient="undefined", outputs="1-2", effects=("values",))
def unique(indices: Tensor) -> tuple[Tensor, Tensor]:
    """The unique elements, sorted; output 1: the index of each element among them, int32."""
    require(indices.dim() == 1, "the indices have one dimension", indices)
    values, places = torch.unique(indices, return_inverse=True)
    return values, places.int()


@operator("Find", types={"index": INTS, "query": "index"})
def find(index: Tensor, query: Tensor, *, missing_value: int = -1) -> Tensor:
    """The last position in `index` of each element of `query`, or `missing_value`."""
    if not index.numel():
        return query.new_full(query.shape, missing_value)
    known, order = torch.sort(index.reshape(-1), stable=True)
    places = (torch.searchsorted(known, query, right=True) - 1).clamp(min=0)
    return torch.where(known[places] == query, order[places], missing_value).to(index.dtype)


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
