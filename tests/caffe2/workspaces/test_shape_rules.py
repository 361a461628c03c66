# SPDX-License-Identifier: Apache-2.0
"""Sizes that Caffe2 knows by a rule, and those that the workspace has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

INT32, INT64, FLOAT = core.DataType.INT32, core.DataType.INT64, core.DataType.FLOAT
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def infer(
    kind: str, sizes: dict[str, list[int]], outputs: int, types: dict[str, int], **arguments: Any
) -> list[tuple[list[int], int] | None]:
    """Return what is inferred for the outputs of an operator on all these inputs."""
    net = core.Net("inferred")
    names = [f"y{i}" for i in range(outputs)]
    getattr(net, kind)(list(sizes), names, **arguments)
    found, kinds = workspace.InferShapesAndTypes([net], sizes, blob_types=types)
    return [(found[name], kinds[name]) if name in found else None for name in names]


def test_operators_with_a_rule_have_the_sizes_that_caffe2_infers() -> None:
    ranges = {"x": [64], "r": [3, 5, 2]}
    kinds = {"x": INT64, "r": INT32}
    assert infer("GatherRanges", ranges, 2, kinds) == [([64], INT64), ([3], INT32)]
    assert infer("IndexHash", {"x": [2, 32]}, 1, {"x": INT64}) == [([2, 32], INT64)]
    assert infer("HalfToFloat", {"x": [4]}, 1, {"x": core.DataType.FLOAT16}) == [([4], FLOAT)]
    hot = {"x": [4, 2], "lens": [2], "b": [7]}
    assert infer("BatchBucketOneHot", hot, 1, {"lens": INT32}) == [([4, 9], FLOAT)]
    rate = infer("LearningRate", {"x": [1]}, 1, {"x": INT64}, policy="fixed", base_lr=0.1)
    assert rate == [([1], FLOAT)]
    images = {"a": [2, 3, 4, 5], "b": [2, 3, 4, 5]}
    stacked = infer("Concat", images, 2, {}, add_axis=1, order="NHWC")
    assert stacked == [([2, 3, 4, 2, 5], FLOAT), ([2], INT32)]
    assert infer("Concat", images, 2, {}, axis=1)[0] == ([2, 6, 4, 5], FLOAT)


def test_a_window_that_is_empty_has_the_sizes_of_its_argument() -> None:
    net = core.Net("window")
    workspace.CreateBlob("last")
    workspace.FeedBlob("next", np.array(0, np.int32))
    workspace.FeedBlob("rows", np.zeros((3, 2), np.float32))
    net.LastNWindowCollector(["last", "next", "rows"], ["last", "next"], num_to_collect=7)
    shapes, types = workspace.InferShapesAndTypes([net])
    assert shapes["last"] == [7, 2] and types["last"] == FLOAT
    assert shapes["next"] == [] and types["next"] == INT32


def test_outputs_that_cannot_be_inferred_keep_the_sizes_of_the_workspace() -> None:
    net = core.Net("unique")
    net.Unique(["x"], ["y"])
    workspace.FeedBlob("x", np.array([1, 1, 2], np.int32))
    assert "y" not in workspace.InferShapesAndTypes([net])[0]
    workspace.RunNetOnce(net)
    assert workspace.InferShapesAndTypes([net])[0]["y"] == [2]
    assert "y" not in workspace.InferShapesAndTypes([net], {"x": [3]}, blob_types={"x": INT32})[0]
