# SPDX-License-Identifier: Apache-2.0
"""Operators on strings."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.blobs.strings import as_bytes
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.torch_operator import NUMBERS_AND_BOOL, TorchOperator, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _Strings(TorchOperator):
    """A function of each string of input 0."""

    def given(self) -> list[bytes]:
        """Return the strings. Raises EnforceNotMet: input 0 does not hold strings."""
        if not self.has_strings(0):
            raise EnforceTypeError(
                f"{self._definition.type} takes strings, not {self.Input(0).dtype().name}."
            )
        return self.strings(0)


@register_operator("StringPrefix")
class StringPrefix(_Strings):
    """The first `length` (3) bytes of each string."""

    def RunOnDevice(self) -> None:
        n = max(self.GetSingleArgument("length", 3), 0)
        self.put_strings(0, self.Input(0).sizes(), [one[:n] for one in self.given()])


@register_operator("StringSuffix")
class StringSuffix(_Strings):
    """The last `length` (3) bytes of each string."""

    def RunOnDevice(self) -> None:
        n = max(self.GetSingleArgument("length", 3), 0)
        cut = [one[max(len(one) - n, 0) :] for one in self.given()]
        self.put_strings(0, self.Input(0).sizes(), cut)


class _Test(_Strings):
    """A condition on each string."""

    argument: str

    def RunOnDevice(self) -> None:
        text = as_bytes(self.GetSingleArgument(self.argument, ""))
        found = [self.test(one, text) for one in self.given()]
        self.Output(0, self.Input(0).sizes(), c10.bool).mutable_data()[:] = found

    def test(self, one: bytes, text: bytes) -> bool:
        """Return whether the condition holds."""
        raise NotImplementedError


@register_operator("StringStartsWith")
class StringStartsWith(_Test):
    """Whether each string starts with `prefix`."""

    argument = "prefix"

    def test(self, one: bytes, text: bytes) -> bool:
        """Return whether `one` starts with `text`."""
        return one.startswith(text)


@register_operator("StringEndsWith")
class StringEndsWith(_Test):
    """Whether each string ends with `suffix`."""

    argument = "suffix"

    def test(self, one: bytes, text: bytes) -> bool:
        """Return whether `one` ends with `text`."""
        return one.endswith(text)


@register_operator("StringEquals")
class StringEquals(_Test):
    """Whether each string equals `text`."""

    argument = "text"

    def test(self, one: bytes, text: bytes) -> bool:
        """Return whether `one` equals `text`."""
        return one == text


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
