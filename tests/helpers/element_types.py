# SPDX-License-Identifier: Apache-2.0
"""The element types under test, a row each: its names in DLPack, NumPy, torch and buffers.

Written down from the specifications, not read from the package under test.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import ml_dtypes
import numpy as np
import torch

from tests.helpers import dlpack_structs as abi


@dataclasses.dataclass(frozen=True)
class ElementType:
    """`bits` as DLPack counts them; `numpy`, `torch`, `format` are `None` where they lack it."""

    name: str
    code: int
    bits: int
    numpy: np.dtype[Any] | None
    torch: torch.dtype | None
    format: str | None = None

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.bits // 8

    @property
    def dlpack(self) -> tuple[int, int, int]:
        return (self.code, self.bits, 1)

    def sample_bytes(self, numel: int) -> bytes:
        """`numel` elements that differ in their bytes; 0 and 1 alternate for bool."""
        if self.code == abi.BOOL:
            return bytes(i % 2 for i in range(numel))
        return bytes((7 * i + 3) % 64 for i in range(numel * self.itemsize))

    def __str__(self) -> str:
        return self.name


def _row(
    name: str, code: int, bits: int, buffer_format: str | None = None, lacks: str = ""
) -> ElementType:
    numpy = None if "numpy" in lacks else np.dtype(getattr(ml_dtypes, name, None) or name)
    torch_type = None if "torch" in lacks else getattr(torch, name, None)  # None: torch is older
    return ElementType(name, code, bits, numpy, torch_type, buffer_format)


ELEMENT_TYPES = (
    _row("bool", abi.BOOL, 8, "?"),
    _row("int8", abi.INT, 8, "b"),
    _row("int16", abi.INT, 16, "h"),
    _row("int32", abi.INT, 32, "i"),
    _row("int64", abi.INT, 64, "l"),
    _row("uint8", abi.UINT, 8, "B"),
    _row("uint16", abi.UINT, 16, "H"),
    _row("uint32", abi.UINT, 32, "I"),
    _row("uint64", abi.UINT, 64, "L"),
    _row("float16", abi.FLOAT, 16, "e"),
    _row("float32", abi.FLOAT, 32, "f"),
    _row("float64", abi.FLOAT, 64, "d"),
    _row("bfloat16", abi.BFLOAT, 16),
    _row("complex64", abi.COMPLEX, 64, "Zf"),
    _row("complex128", abi.COMPLEX, 128, "Zd"),
    # Younger releases of ml_dtypes know complex32, older ones and NumPy do not.
    _row("complex32", abi.COMPLEX, 32, lacks="numpy"),
    _row("float8_e3m4", 7, 8, lacks="torch"),
    _row("float8_e4m3", 8, 8, lacks="torch"),
    _row("float8_e4m3b11fnuz", 9, 8, lacks="torch"),
    _row("float8_e4m3fn", 10, 8),
    _row("float8_e4m3fnuz", 11, 8),
    _row("float8_e5m2", 12, 8),
    _row("float8_e5m2fnuz", 13, 8),
    _row("float8_e8m0fnu", 14, 8),
)
IN_TORCH = tuple(row for row in ELEMENT_TYPES if row.torch is not None)
IN_NUMPY = tuple(row for row in ELEMENT_TYPES if row.numpy is not None)
IN_BUFFERS = tuple(row for row in ELEMENT_TYPES if row.format is not None)
IN_BOTH = tuple(row for row in IN_TORCH if row.numpy is not None)
BY_NAME = {row.name: row for row in ELEMENT_TYPES}
FLOAT32 = BY_NAME["float32"]
MOST_AXES = 32 if np.__version__.startswith("1.") else 64  # of a NumPy array
