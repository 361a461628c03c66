# SPDX-License-Identifier: Apache-2.0
"""Operators on strings."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.blobs.strings import Strings, as_bytes
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import NUMBERS_AND_BOOL, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__: list[str] = []

STRINGS = {"strings": (c10.string,)}


def _tested(strings: Strings, found: list[bool]) -> Tensor:
    return torch.tensor(found, dtype=torch.bool, device="cpu").reshape(strings.shape)


@operator("StringPrefix", types=STRINGS, gradient="undefined", outputs=1)
def string_prefix(strings: Strings, *, length: int = 3) -> Strings:
    """The first `length` bytes of each string."""
    n = max(length, 0)
    return Strings(strings.shape, [one[:n] for one in strings.items])


@operator("StringSuffix", types=STRINGS, gradient="undefined", outputs=1)
def string_suffix(strings: Strings, *, length: int = 3) -> Strings:
    """The last `length` bytes of each string."""
    n = max(length, 0)
    return Strings(strings.shape, [one[max(len(one) - n, 0) :] for one in strings.items])


@operator("StringStartsWith", types=STRINGS, gradient="undefined")
def string_starts_with(strings: Strings, *, prefix: bytes = b"") -> Tensor:
    """Whether each string starts with `prefix`."""
    return _tested(strings, [one.startswith(prefix) for one in strings.items])


@operator("StringEndsWith", types=STRINGS, gradient="undefined")
def string_ends_with(strings: Strings, *, suffix: bytes = b"") -> Tensor:
    """Whether each string ends with `suffix`."""
    return _tested(strings, [one.endswith(suffix) for one in strings.items])


@operator("StringEquals", types=STRINGS, gradient="undefined")
def string_equals(strings: Strings, *, text: bytes = b"") -> Tensor:
    """Whether each string equals `text`."""
    return _tested(strings, [one == text for one in strings.items])


@register_operator("StringJoin")
class StringJoin(TorchOperator):
    """Join the elements of each row, or with `axis` 1 of each column, into one string.

    Each element is followed by `delimiter` (","). Numbers have six significant digits; 8-bit
    integers are characters.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._axis = self.GetSingleArgument("axis", 0)
        enforce(self._axis in (0, 1), f"The axis must be 0 or 1, not {self._axis}.")

    def RunOnDevice(self) -> None:
        sizes = list(self.Input(0).sizes())
        enforce(len(sizes) in (1, 2), f"Input 0 must have one or two dimensions, not {len(sizes)}.")
        enforce(len(sizes) == 2 or self._axis == 0, "With one dimension, axis must be 0.")
        delimiter = as_bytes(self.GetSingleArgument("delimiter", ","))
        flat = self._texts()
        rows, columns = sizes if len(sizes) == 2 else [sizes[0], 1]
        if self._axis == 0:
            joined = [flat[i * columns : (i + 1) * columns] for i in range(rows)]
        else:
            joined = [flat[j::columns] for j in range(columns)]
        texts = [b"".join(item + delimiter for item in one) for one in joined]
        self.put_strings(0, [len(texts)], texts)

    def _texts(self) -> list[bytes]:
        if self.has_strings(0):
            return self.strings(0)
        dtype = self.Input(0).dtype()
        types = (*NUMBERS_AND_BOOL, c10.int8, c10.uint8, c10.int16, c10.uint16)
        values = self.x(0, types).reshape(-1).tolist()
        if dtype in (c10.int8, c10.uint8):
            return [bytes([value % 256]) for value in values]
        form = "%g" if dtype in (c10.float32, c10.float64) else "%d"
        return [(form % value).encode() for value in values]
