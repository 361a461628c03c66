# SPDX-License-Identifier: Apache-2.0
"""Arrow's arrays, tensors, buffers and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tests.exchange.matrix.case import Case
from tests.exchange.matrix.sources_numpy import FLOATS

NUMBERS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)
TENSORS = np.arange(24, dtype=np.float32).reshape(4, 2, 3)


def address(source: Any) -> int:
    """Where the first element of an array lies, by Arrow's own count."""
    return int(source.buffers()[1].address + source.offset * source.type.bit_width // 8)


def of_array(name: str, make: Any, values: Any, **fields: Any) -> Case:
    fields.setdefault("address", address)
    fields.setdefault("readonly", True)
    return Case(f"arrow {name}", make, values=lambda: values, **fields)


def typed(name: str) -> Case:
    values = np.arange(5).astype(name)
    return of_array(name, lambda: pa.array(values), values)


def of_tensor(name: str, source: np.ndarray[Any, Any], **fields: Any) -> Case:
    return of_array(
        f"tensor {name}",
        lambda: pa.Tensor.from_numpy(source),
        np.ascontiguousarray(source),
        address=lambda _: int(source.ctypes.data),
        strides=tuple(step // source.itemsize for step in source.strides),
        **fields,
    )


def frozen() -> np.ndarray[Any, Any]:
    values = FLOATS.copy()
    values.flags.writeable = False
    return values


def refused(name: str, make: Any, match: str = "") -> Case:
    return Case(f"arrow {name}", make, match=match)


CASES = [
    *(typed(name) for name in NUMBERS),
    of_array("slice", lambda: pa.array(np.arange(10))[2:5], np.arange(2, 5)),
    of_array("slice without the nulls", lambda: pa.array([None, 1, 2])[1:], np.int64([1, 2])),
    of_array("empty", lambda: pa.array([], pa.int32()), np.zeros(0, np.int32)),
    of_tensor("writable", FLOATS.copy(), readonly=False),
    of_tensor("read-only", frozen()),
    of_tensor("transposed", np.arange(6.0).reshape(2, 3).T, readonly=False),
    of_tensor("every other", np.arange(24).reshape(4, 6)[::2, ::3], readonly=False),
    of_array(
        "buffer",
        lambda: pa.py_buffer(b"\x00\x01\x02"),
        np.int8([0, 1, 2]),
        address=lambda source: int(source.address),
    ),
    of_array(
        "writable buffer",
        lambda: pa.py_buffer(bytearray(b"\x00\x01\x02")),
        np.int8([0, 1, 2]),
        address=lambda source: int(source.address),
        readonly=False,
    ),
    refused("nulls", lambda: pa.array([1, None]), "fill_null"),
    refused("slice with nulls", lambda: pa.array([1, None, 2])[1:], "drop_null"),
    refused("only nulls", lambda: pa.nulls(2), "null"),
    Case("arrow strings", lambda: pa.array(["a", "b"]), text=True),
    refused("octets", lambda: pa.array([b"a"])),
    Case("arrow bits", lambda: pa.array([True, False])[1:], lambda: np.array([False])),
    of_array(
        "bytes of booleans",
        lambda: pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())),
        np.array([True, False]),
        address=lambda source: int(source.buffers()[1].address),
    ),
    of_array(
        "lists of one size",
        lambda: pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16(), 2))[1:],
        np.int16([[3, 4], [5, 6]]),
        address=lambda source: int(source.buffers()[2].address + 4),
    ),
    of_array(
        "tensors",
        lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(TENSORS),
        TENSORS,
        address=lambda source: int(source.buffers()[2].address),
    ),
    of_array(
        "tensors in another order",
        lambda: pa.FixedShapeTensorArray.from_numpy_ndarray(TENSORS.transpose(0, 2, 1)),
        np.ascontiguousarray(TENSORS.transpose(0, 2, 1)),
        address=lambda source: int(source.buffers()[2].address),
        strides=(6, 1, 3),
    ),
    refused("nulls in lists", lambda: pa.array([[1, None]], pa.list_(pa.int8(), 2)), "1 null"),
    refused("octets of one size", lambda: pa.array([b"ab"], pa.binary(2))),
    refused("lists", lambda: pa.array([[1], [2, 3]])),
    refused("dictionary", lambda: pa.array(["a", "b", "a"]).dictionary_encode()),
    refused("structures", lambda: pa.array([{"a": 1}])),
    refused("times", lambda: pa.array([1, 2], pa.timestamp("ns"))),
    refused("days", lambda: pa.array([1, 2], pa.date32())),
    refused("decimals", lambda: pa.array([1, 2], pa.decimal128(5))),
    refused("chunks", lambda: pa.chunked_array([[1, 2], [3]]), "combine_chunks"),
    of_array(
        "one chunk",
        lambda: pa.chunked_array([[], [1, 2]], pa.int64()),
        np.int64([1, 2]),
        address=lambda source: address(source.chunk(1)),
    ),
    of_array(
        "column",
        lambda: pa.table({"a": [1, 2]}),
        np.int64([[1], [2]]),
        address=lambda source: address(source.column(0).chunk(0)),
    ),
    Case(
        "arrow batch",
        lambda: pa.record_batch({"a": [1, 2], "b": [3, 4]}),
        lambda: np.int64([[1, 3], [2, 4]]),
    ),
    Case(
        "arrow table of two types",
        lambda: pa.table({"a": [1, 2], "b": [0.5, 4]}),
        lambda: np.float64([[1, 0.5], [2, 4]]),
    ),
    refused("table with text", lambda: pa.table({"a": [1], "b": ["a"]}), "strings"),
    refused("table with nulls", lambda: pa.table({"a": [1], "b": [None]}), "1 null"),
    Case("arrow number", lambda: pa.scalar(5), error=TypeError),
    Case("arrow type", pa.int32, error=TypeError),
]
