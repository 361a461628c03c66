# SPDX-License-Identifier: Apache-2.0
"""What is serialized, the same here and in the real Caffe2's Python 3.8."""

import numpy as np


def values(kind, n):
    """Make `n` values: strings, or random ones over the whole range of a NumPy type."""
    rng = np.random.RandomState(7)
    if kind == "strings":
        made = np.empty(n, dtype=object)
        made[:] = [b"string %d" % i for i in range(n)]
        return made
    dtype = np.dtype(kind)
    if dtype.kind == "f":
        return rng.rand(n).astype(dtype)
    return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype)
