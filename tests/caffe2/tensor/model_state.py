# SPDX-License-Identifier: Apache-2.0
"""What a tensor of the model holds: sizes, a type, and a storage that others may share."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

ITEMSIZE = {"": 0, "string": 8, "bool": 1, "float16": 2} | {
    name: np.dtype(name).itemsize
    for name in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8")
}


class RefusedError(Exception):
    """The real tensor raises here."""


class UnsafeError(Exception):
    """The real tensor touches memory here that is not its own."""


@dataclasses.dataclass(eq=False)
class Buffer:
    """One allocation: `cells` are bytes, `None` where nothing was written, or strings."""

    cells: list[Any]
    strings: bool
    deleter_of: int | None = None
    external: bool = False


@dataclasses.dataclass(eq=False)
class Storage:
    buffer: Buffer | None = None
    nbytes: int = 0


@dataclasses.dataclass(eq=False)
class Impl:
    sizes: tuple[int, ...] = (0,)
    dtype: str = ""
    offset: int = 0
    reserved: bool = False
    storage: Storage = dataclasses.field(default_factory=Storage)

    @property
    def numel(self) -> int:
        return math.prod(self.sizes)

    @property
    def itemsize(self) -> int:
        return ITEMSIZE[self.dtype]

    @property
    def initialized(self) -> bool:
        return self.storage.buffer is not None or self.numel == 0

    def need(self, numel: int) -> int:
        """Bytes of storage that `numel` elements take up to their end."""
        return (self.offset + numel) * self.itemsize

    def cells(self) -> slice:
        """Where the elements are in the cells of the buffer."""
        unit = 1 if self.dtype == "string" else self.itemsize
        return slice(self.offset * unit, (self.offset + self.numel) * unit)

    def free(self) -> None:
        self.storage, self.offset = Storage(), 0

    def mutable_data(self, dtype: str) -> None:
        if self.dtype == dtype and self.initialized:
            return
        objects = "string" in (self.dtype, dtype)
        self.offset, self.dtype = 0, dtype
        nbytes = self.numel * self.itemsize
        if self.numel == 0 or (not objects and self.storage.nbytes >= nbytes):
            return
        cells = [b""] * self.numel if dtype == "string" else [None] * nbytes
        self.storage.buffer = Buffer(cells, dtype == "string")
        self.storage.nbytes = nbytes

    def write(self, cells: list[Any]) -> None:
        if self.numel:
            assert self.storage.buffer is not None
            self.storage.buffer.cells[self.cells()] = cells

    def read(self) -> list[Any]:
        return [] if self.storage.buffer is None else self.storage.buffer.cells[self.cells()]

    def check(self) -> None:
        """Raise `UnsafeError` where the elements are not all there, or are of another kind."""
        buffer = self.storage.buffer
        if buffer is None or self.numel == 0 or not self.dtype:
            return
        if buffer.strings is not (self.dtype == "string"):
            raise UnsafeError("plain memory as strings")
        if self.need(self.numel) > self.storage.nbytes or self.cells().stop > len(buffer.cells):
            raise UnsafeError("tensor larger than its storage")
