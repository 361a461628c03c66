# SPDX-License-Identifier: Apache-2.0
"""CuPy inside: values without gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bridge.annotation import Any
from bridge.functions.inside import numpy


class Inside(numpy.Inside):
    """A function of CuPy arrays."""

    @staticmethod
    def arrive(x: Any, library: str, keep: bool = False) -> Any:
        """Return a CuPy array of the memory of `x`; of host memory a copy."""
        from bridge.front import to_cupy

        if library in ("torch", "paddle"):
            x = x.detach()
        return to_cupy(x, copy=True) if keep else to_cupy(x)

    @contextmanager
    def restored(self, state: bytes | None) -> Iterator[None]:
        """Run with the random numbers as they are, on the device."""
        yield
