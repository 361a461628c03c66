# SPDX-License-Identifier: Apache-2.0
"""Regions with more samples than any memory holds."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated


def run(regions: list[list[float]], **arguments: object) -> object:
    workspace.FeedBlob("x", np.ones((1, 2, 4, 4), np.float32))
    workspace.FeedBlob("r", np.array(regions, np.float32))
    workspace.RunOperatorOnce(core.CreateOperator("RoIAlign", ["x", "r"], ["y"], **arguments))
    return workspace.FetchBlob("y")


# 2**61 samples, of 24 bytes each, are three times 2**64 bytes: none, in 64 bits.
@isolated
@pytest.mark.parametrize("length", [2.0**60, 2.0**61, 1e30])
@pytest.mark.parametrize("aligned", [False, True])
def test_a_region_that_is_too_long(length: float, aligned: bool) -> None:
    for region in ([0, 0, length, 1], [0, 0, 1, length]):
        with pytest.raises((EnforceNotMet, MemoryError)):
            run([[0, 0, 2, 2], region], aligned=aligned)
    assert not workspace.HasBlob("y")


@isolated
@pytest.mark.parametrize("ratio", [2**31, 2**60, 2**63 - 1])
def test_a_ratio_that_is_too_large(ratio: int) -> None:
    with pytest.raises(EnforceNotMet, match="32 bits"):
        run([[0, 0, 2, 2]], sampling_ratio=ratio)


def test_a_region_that_is_nowhere_has_no_samples() -> None:
    found = run([[0, 0, float("nan"), 2], [0, 0, 2, 2]])
    assert (found[0] == 0).all()
    assert (found[1] == 1).all()
