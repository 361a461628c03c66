# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def top_k(
    x: Tensor,
    values: Tensor,
    places: Tensor,
    flat: Tensor | None,
    outer: int,
    n: int,
    inner: int,
    k: int,
) -> Tensor: ...
def top_k_of_segments(
    x: Tensor, values: Tensor, places: Tensor, lengths: Tensor, segments: int, n: int, k: int
) -> Tensor: ...
