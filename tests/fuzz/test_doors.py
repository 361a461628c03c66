# SPDX-License-Identifier: Apache-2.0
"""Some hundred inputs by chance for each door, the same ones each time: taken or refused."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.doors import DOORS, enter
from tests.golden.blob_messages import mutated
from tests.helpers.isolate import isolated

INPUTS = {"net": 100, "shell": 100, "minidb": 150}


@isolated
@pytest.mark.parametrize("name", DOORS)
def test_a_door_takes_or_refuses(name: str) -> None:
    rng, taken = random.Random(name), 0
    seeds = DOORS[name][1]()
    count = INPUTS.get(name, 400)
    for data in seeds:
        enter(name, data)
    for _ in range(count):
        data = mutated(rng, seeds)
        if name in ("capsule", "array_interface", "buffer", "arrow_array", "pickled"):
            data = rng.randbytes(64)
        try:
            taken += enter(name, data)
        except BaseException as error:
            raise AssertionError(f"{name} of {data!r}") from error
    assert 0 < taken < count or name == "shell"
