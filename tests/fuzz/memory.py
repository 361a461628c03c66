# SPDX-License-Identifier: Apache-2.0
"""An allocator that has little, so that sizes in a few bytes do not ask for gigabytes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from bridge import c10

MOST = 1 << 16


class _LittleMemory(c10.Allocator):
    """Refuses what the sizes in a few bytes may ask for: gigabytes, which take seconds to fill."""

    def raw_allocate(self, nbytes: int) -> int:
        if nbytes > MOST:
            raise MemoryError(f"{nbytes} bytes")
        return super().raw_allocate(nbytes)


_LITTLE = _LittleMemory()


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    before = c10.GetAllocator("cpu")
    c10.SetAllocator("cpu", _LITTLE)
    try:
        yield
    finally:
        c10.SetAllocator("cpu", before)
