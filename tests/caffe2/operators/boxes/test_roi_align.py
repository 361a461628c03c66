# SPDX-License-Identifier: Apache-2.0
"""Regions too long for any memory, images without pixels, gradients that do not fit."""

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


GRADIENTS = {
    "RoIAlignGradient": ["x", "regions", "dy"],
    "RoIAlignRotatedGradient": ["x", "turned", "dy"],
    "RoIPoolGradient": ["x", "regions", "places", "dy"],
    "MaxPoolWithIndexGradient": ["x", "dy", "places"],
}


@pytest.mark.parametrize("op_type", GRADIENTS)
def test_a_gradient_that_has_not_the_sizes_of_the_output_is_refused(op_type: str) -> None:
    op = core.CreateOperator(op_type, GRADIENTS[op_type], ["dx"], pooled_h=2, pooled_w=2)
    feeds = {"x": (2, 3, 8, 8), "regions": (2, 5), "turned": (2, 6)}

    def run_on(shape: tuple[int, ...]) -> None:
        for name, sizes in {**feeds, "dy": shape}.items():
            workspace.FeedBlob(name, np.ones(sizes, np.float32))
        workspace.FeedBlob("places", np.zeros(shape, np.int32))
        workspace.RunOperatorOnce(op)

    run_on((2, 3, 2, 2))
    unequal = [(2, 3, 1, 2), (2, 3, 3, 3)] if "Align" in op_type else []
    for shape in ((4, 3, 2, 2), (1, 3, 2, 2), (2, 1, 2, 2), *unequal):
        with pytest.raises(EnforceNotMet, match=op_type):
            run_on(shape)


def test_a_maximum_outside_of_its_image_is_refused() -> None:
    for name, shape in (("x", (1, 2, 4, 4)), ("r", (1, 5)), ("dy", (1, 2, 1, 1))):
        workspace.FeedBlob(name, np.zeros(shape, np.float32))
    for place in (16, -2):
        workspace.FeedBlob("places", np.full((1, 2, 1, 1), place, np.int32))
        with pytest.raises(EnforceNotMet, match="from -1 to below 16"):
            workspace.RunOperatorOnce(
                core.CreateOperator("RoIPoolGradient", ["x", "r", "places", "dy"], ["dx"])
            )
