# SPDX-License-Identifier: Apache-2.0
"""Operators on strings."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.blobs.string_arrays import Strings
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import NUMBERS_AND_BOOL, require

STRINGS = {"strings": (c10.string,)}
TEXTS = (*NUMBERS_AND_BOOL, c10.int8, c10.uint8, c10.int16, c10.uint16, c10.string)


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
    require(length >= 0, "length is not negative", length)
    n = length
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


def _texts(x: Tensor | Strings) -> list[bytes]:
    """Return the elements as texts: numbers have six significant digits, bytes are characters."""
    if isinstance(x, Strings):
        return x.items
    values = x.reshape(-1).tolist()
    if x.dtype in (torch.int8, torch.uint8):
        return [bytes([value % 256]) for value in values]
    form = "%g" if x.is_floating_point() else "%d"
    return [(form % value).encode() for value in values]


@operator("StringJoin", types=TEXTS, gradient="undefined", outputs=1, effects=("values",))
def string_join(x: Tensor | Strings, *, axis: int = 0, delimiter: bytes = b",") -> Strings:
    """Join the elements of each row, or with `axis` 1 of each column, into one string.

    Each element is followed by `delimiter`. Numbers have six significant digits; 8-bit integers are
    characters.
    """
    sizes = list(x.shape)
    require(axis in (0, 1), "axis is 0 or 1", axis)
    require(len(sizes) in (1, 2), "X has one or two dimensions", sizes)
    require(len(sizes) == 2 or axis == 0, "axis is 0 with one dimension", axis)
    require(0 not in sizes, "X has elements", sizes)
    flat = _texts(x)
    rows, columns = sizes if len(sizes) == 2 else [sizes[0], 1]
    if axis == 0:
        joined = [flat[i * columns : (i + 1) * columns] for i in range(rows)]
    else:
        joined = [flat[j::columns] for j in range(columns)]
    texts = [b"".join(item + delimiter for item in one) for one in joined]
    return Strings([len(texts)], texts)
