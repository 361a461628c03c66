# SPDX-License-Identifier: Apache-2.0
"""The order of std::shuffle with a new std::default_random_engine.

Caffe2's operators that shuffle by it have the same result at each run. This is the implementation
of GNU's library: the minimal standard generator, and two indices from each draw while their product
fits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")

_MODULUS = 2**31 - 1
_RANGE = _MODULUS - 2  # the engine returns 1 to _MODULUS - 1


class _Engine:
    """The generator x = 16807 x modulo 2**31 - 1, starting at 1."""

    def __init__(self) -> None:
        self.state = 1

    def below(self, count: int) -> int:
        """Draw a uniform integer in [0, count)."""
        scale = _RANGE // count
        while True:
            self.state = self.state * 16807 % _MODULUS
            drawn = self.state - 1
            if drawn < count * scale:
                return drawn // scale


def shuffled(items: Iterable[Item]) -> list[Item]:
    """Return a list of the items in that order."""
    result = list(items)
    size = len(result)
    engine = _Engine()
    places: list[int] = []
    if size and _RANGE // size >= size:
        if size % 2 == 0:
            places.append(engine.below(2))
        while len(places) + 1 < size:
            count = len(places) + 2
            places += divmod(engine.below(count * (count + 1)), count + 1)
    else:
        places = [engine.below(i + 1) for i in range(1, size)]
    for i, place in enumerate(places, 1):
        result[i], result[place] = result[place], result[i]
    return result
