# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

@disjoint_base
class Search:
    ranked: list[tuple[int, ...]]
    def __init__(self, width: int, threshold: float) -> None: ...
    def step(self, given: NDArray[np.float32]) -> None: ...
    def odds(self, prefix: tuple[int, ...]) -> float: ...
