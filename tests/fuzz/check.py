# SPDX-License-Identifier: Apache-2.0
"""What holds for all bytes that are given to `Blob.deserialize`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bridge.c10 import EnforceNotMet
from bridge.caffe2.blobs.blob import Blob

_MOST = 1 << 20  # elements; the round trip of more is slow, and holds it three times
_HELD = np.arange(4, dtype=np.float32) + 0.5


class Checker:
    """Gives bytes to one blob again and again, and counts how it went."""

    def __init__(self) -> None:
        self.refused = 0
        self.read = 0
        self.blob = Blob()
        self.blob.feed(_HELD)

    def check(self, data: bytes) -> None:
        """Refused, the blob is as it was; read, it holds what is written and read as the same."""
        failure = _refusal(self.blob, data)
        if failure is not None:
            self.refused += 1
            assert failure.caller == "Blob.deserialize"
            assert failure.message
            held = self.blob.fetch()
            assert held.dtype == _HELD.dtype
            assert held.tobytes() == _HELD.tobytes()
            return
        self.read += 1
        if self.blob.is_tensor() and math.prod(self.blob.as_tensor().shape) > _MOST:
            # a chunk of a larger tensor than one message may hold
            self.blob = Blob()
            self.blob.feed(_HELD)
            return
        written = self.blob.serialize("x")
        again = Blob()
        again.deserialize(written)
        assert again.serialize("x") == written
        # NumPy has no more dimensions
        if not self.blob.is_tensor() or len(self.blob.as_tensor().shape) <= 64:
            assert _parts(again.fetch()) == _parts(self.blob.fetch())
        self.blob = Blob()
        self.blob.feed(_HELD)


def _refusal(blob: Blob, data: bytes) -> EnforceNotMet | None:
    """Deserialize; anything else that is raised is an error of the bridge."""
    try:
        blob.deserialize(data)
    except EnforceNotMet as error:
        return error
    return None


def _parts(value: Any) -> Any:
    """Take a fetched value apart into what compares, NaN included."""
    if isinstance(value, np.ndarray):
        # Flat, since the nested lists of an array without elements may be billions.
        values = value.ravel().tolist() if value.dtype == object else value.tobytes()
        return value.dtype, value.shape, values
    if isinstance(value, tuple):
        return _parts(value[0]), np.float32(value[1]).tobytes(), value[2]
    return value
