# SPDX-License-Identifier: Apache-2.0
"""Regions with more samples than any memory holds, and images without pixels."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def run(regions: list[list[float]], **arguments: object) -> object:
    workspace.FeedBlob("x", np.ones((1, 2, 4, 4), np.float32))
    workspace.FeedBlob("r", np.array(regions, np.float32))
    workspace.RunOperatorOnce(core.CreateOperator("RoIAlign", ["x", "r"], ["y"], **arguments))
    return workspace.FetchBlob("y")


# 2**61 samples, of 24 bytes each, are three times 2**64 bytes: none, in 64 bits.
@isolated
@pytest.mark.parametrize("length", [2.0**60, 2.0**61, 1e30])
@pytest.mark.parametrize("aligned", [False, True])
def test_a_region_that_is_too_long_is_refused(length: float, aligned: bool) -> None:
    for region in ([0, 0, length, 1], [0, 0, 1, length]):
        with pytest.raises((EnforceNotMet, MemoryError)):
            run([[0, 0, 2, 2], region], aligned=aligned)
    assert not workspace.HasBlob("y")


@isolated
@pytest.mark.parametrize("ratio", [2**31, 2**60, 2**63 - 1])
def test_a_ratio_that_is_too_large_is_refused(ratio: int) -> None:
    with pytest.raises(EnforceNotMet, match="32 bits"):
        run([[0, 0, 2, 2]], sampling_ratio=ratio)


def test_a_region_that_is_nowhere_has_no_samples() -> None:
    found = run([[0, 0, float("nan"), 2], [0, 0, 2, 2]])
    assert (found[0] == 0).all()
    assert (found[1] == 1).all()


@isolated
@pytest.mark.parametrize("sizes", [(1, 2, 0, 4), (1, 2, 4, 0), (1, 2, 0, 0)])
@pytest.mark.parametrize(("kind", "sides"), [("RoIAlign", 4), ("RoIAlignRotated", 5)])
def test_an_image_without_pixels_is_refused_where_there_are_regions(
    sizes: tuple[int, ...], kind: str, sides: int
) -> None:
    workspace.FeedBlob("x", np.ones(sizes, np.float32))
    workspace.FeedBlob("dy", np.ones((1, 2, 1, 1), np.float32))
    workspace.FeedBlob("r", np.ones((1, sides), np.float32))
    forward = core.CreateOperator(kind, ["x", "r"], ["y"])
    back = core.CreateOperator(f"{kind}Gradient", ["x", "r", "dy"], ["dx"])
    for op in (forward, back):
        with pytest.raises(EnforceNotMet, match="images with regions have pixels"):
            workspace.RunOperatorOnce(op)
    workspace.FeedBlob("r", np.ones((0, sides), np.float32))
    workspace.FeedBlob("dy", np.ones((0, 2, 1, 1), np.float32))
    workspace.RunOperatorOnce(forward)
    workspace.RunOperatorOnce(back)
    assert workspace.FetchBlob("y").shape == (0, 2, 1, 1)
    assert workspace.FetchBlob("dx").shape == sizes
