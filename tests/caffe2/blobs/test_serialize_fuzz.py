# SPDX-License-Identifier: Apache-2.0
"""Ten thousand blobs of the real Caffe2 with something wrong: refused whole, or read whole."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.fuzz.check import Checker
from tests.golden.blob_messages import crafted, mutated

INPUTS = 10_000
SEED = 20_250_601
PARTS = 10

_BLOBS = sorted((Path(__file__).parents[2] / "golden" / "blobs").glob("*.pb"))
_SEEDS = [data for data in (path.read_bytes() for path in _BLOBS) if len(data) < 1000]
_SEEDS += [data for _, data in crafted() if len(data) < 1000]


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_blobs_are_refused_or_read_and_written_again(part: int) -> None:
    rng = random.Random(SEED + part)
    checker = Checker()
    for _ in range(INPUTS // PARTS):
        checker.check(mutated(rng, _SEEDS))
    # both happen, or the mutations are of no use
    assert checker.refused > INPUTS // PARTS // 10
    assert checker.read > INPUTS // PARTS // 20


def test_the_checker_notices_that_a_refused_message_changed_a_blob() -> None:
    checker = Checker()
    checker.blob.feed(np.zeros(3))
    with pytest.raises(AssertionError):
        checker.check(b"junk")
