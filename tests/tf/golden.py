# SPDX-License-Identifier: Apache-2.0
"""Messages that TensorFlow 2.21 wrote, read from golden.json (see `record`)."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from bridge import at
from tests.helpers.dlpack_consumer import read_elements


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A message and what is in it: `data` row-major bytes, of strings a list."""

    dtype: str
    sizes: tuple[int, ...]
    by: str
    message: bytes
    data: bytes | list[bytes]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.sizes)}-{self.by}"


def _recorded() -> list[Recorded]:
    rows = json.loads(Path(__file__).with_name("golden.json").read_text())
    for row in rows:
        data = row["data"]
        strings = isinstance(data, list)
        row["data"] = [bytes.fromhex(one) for one in data] if strings else bytes.fromhex(data)
        row["message"] = bytes.fromhex(row["message"])
        row["sizes"] = tuple(row["sizes"])
    return [Recorded(**row) for row in rows]


GOLDEN = _recorded()
NUMERIC = [row for row in GOLDEN if row.dtype != "string"]
STRINGS = [row for row in GOLDEN if row.dtype == "string"]


def bytes_of(x: at.Tensor) -> bytes:
    """The elements of an at.Tensor in row-major order, read from its memory."""
    return read_elements(x.data_ptr(), x.sizes(), x.strides(), x.itemsize())
