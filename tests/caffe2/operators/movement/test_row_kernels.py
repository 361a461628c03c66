# SPDX-License-Identifier: Apache-2.0
"""Kernels for few rows: runs of other sizes and types, and wrong indices, in recorded calls."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def create(op_type: str, inputs: list[str], outputs: list[str]) -> str:
    net = core.Net(f"of_{op_type}")
    net.Proto().op.append(core.CreateOperator(op_type, inputs, outputs))
    workspace.CreateNet(net, input_blobs=inputs)
    return net.Name()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.bool_])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_taken_in_each_run(dtype: type, index: type) -> None:
    net = create("Gather", ["x", "i"], ["y"])
    random = np.random.RandomState(0)
    for sizes in ((4,), (4,), (4,), (5, 3), (5, 3), (5, 3), (2, 0), (4,)):
        x = (random.rand(*sizes) * 9).astype(dtype)
        for shape in ((3,), (), (2, 2), (0,), (3,)):
            i = random.randint(-sizes[0], sizes[0], shape).astype(index)
            workspace.FeedBlob("x", x)
            workspace.FeedBlob("i", np.asarray(i))
            workspace.RunNet(net)
            found = workspace.FetchBlob("y")
            assert found.dtype == dtype and found.shape == (*shape, *sizes[1:])
            np.testing.assert_array_equal(found, x[i])


def test_a_wrong_index_changes_nothing_in_any_run() -> None:
    nets = {
        create("Gather", ["x", "i"], ["y"]): "y",
        create("ScatterWeightedSum", ["x", "one", "i", "rows", "one"], ["x"]): "x",
    }
    workspace.FeedBlob("one", np.ones(1, np.float32))
    workspace.FeedBlob("rows", np.zeros(2, np.float32))
    workspace.FeedBlob("x", np.array([1.0, 2.0, 3.0], np.float32))
    for net, output in nets.items():
        for _ in range(4):
            workspace.FeedBlob("i", np.array([2, 0]))
            workspace.RunNet(net)
            before = workspace.FetchBlob(output)
            workspace.FeedBlob("i", np.array([1, 3]))
            with pytest.raises(IndexError, match=r"\[1, 3\] is out of range for 3 rows") as raised:
                workspace.RunNet(net)
            assert isinstance(raised.value, EnforceNotMet)
            np.testing.assert_array_equal(workspace.FetchBlob(output), before)


def test_rows_that_occur_twice_are_scaled_and_added_to_twice() -> None:
    net = create("ScatterWeightedSum", ["x", "scale", "i", "a", "two", "b", "half"], ["x"])
    values = {"scale": 3, "two": 2, "half": 0.5}
    for name, value in values.items():
        workspace.FeedBlob(name, np.array([value], np.float32))
    for n in (2, 2, 2, 3, 3, 1):
        x, a, b = (np.arange(size * 2, dtype=np.float32).reshape(size, 2) for size in (4, n, n))
        i = np.array([1, 3, 1][:n], np.int32)
        for name, value in {"x": x, "a": a, "b": b, "i": i}.items():
            workspace.FeedBlob(name, value)
        workspace.RunNet(net)
        for row in i:
            x[row] *= 3
        np.add.at(x, i, a * 2)
        np.add.at(x, i, b / 2)
        np.testing.assert_allclose(workspace.FetchBlob("x"), x)


def test_distances_and_sums_follow_other_sizes() -> None:
    distance = create("SquaredL2Distance", ["a", "b"], ["d"])
    back = create("SquaredL2DistanceGradient", ["a", "b", "d"], ["da", "db"])
    mean = create("AveragedLoss", ["d"], ["m"])
    spread = create("ReduceFrontSumGradient", ["row", "a"], ["rows"])
    random = np.random.RandomState(1)
    for sizes in ((3, 4), (3, 4), (3, 4), (2, 5), (2, 5), (1,), (1,), (3, 4)):
        a, b = (random.rand(*sizes).astype(np.float32) for _ in range(2))
        row = np.asarray(random.rand(*sizes[1:]), np.float32)
        for name, value in {"a": a, "b": b, "row": row}.items():
            workspace.FeedBlob(name, value)
        for net in (distance, back, mean, spread):
            workspace.RunNet(net)
        d = ((a - b) ** 2).reshape(sizes[0], -1).sum(1) / 2
        gradient = (a - b) * d.reshape(-1, *[1] * (len(sizes) - 1))
        expected = {"d": d, "da": gradient, "db": -gradient, "m": d.mean()}
        expected["rows"] = np.broadcast_to(row, sizes)
        for name, value in expected.items():
            np.testing.assert_allclose(workspace.FetchBlob(name), value, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_parts_have_the_lengths_of_each_run(dtype: type) -> None:
    net = core.Net("of_split")
    net.Split(["x", "lengths"], ["a", "b", "c"], axis=1)
    workspace.CreateNet(net, input_blobs=["x", "lengths"])
    x = np.arange(2 * 6 * 3).reshape(2, 6, 3).astype(dtype)
    workspace.FeedBlob("x", x)
    for lengths in ([1, 2, 3], [1, 2, 3], [1, 2, 3], [3, 2, 1], [0, 6, 0], [0, 6, 0], [1, 2, 3]):
        workspace.FeedBlob("lengths", np.array(lengths, np.int32))
        workspace.RunNet(net)
        bounds = np.cumsum(lengths)[:-1]
        for name, part in zip("abc", np.split(x, bounds, 1), strict=True):
            found = workspace.FetchBlob(name)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, part)
    workspace.FeedBlob("lengths", np.array([1, 2, 4], np.int32))
    with pytest.raises(EnforceNotMet, match=r"the parts add up to 6 rows"):
        workspace.RunNet(net)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_added_along_an_axis_in_each_run(index: type) -> None:
    net = create("BatchGatherGradient", ["x", "i", "dy"], ["dx"])
    random = np.random.RandomState(0)
    x = np.zeros((3, 5, 2), np.float32)
    workspace.FeedBlob("x", x)
    for n in (4, 4, 4, 4, 0, 7, 7, 7):
        i, dy = random.randint(0, 5, n).astype(index), random.rand(3, n, 2).astype(np.float32)
        workspace.FeedBlob("i", i)
        workspace.FeedBlob("dy", dy)
        workspace.RunNet(net)
        expected = x.copy()
        np.add.at(expected, (slice(None), i), dy)
        np.testing.assert_allclose(workspace.FetchBlob("dx"), expected, rtol=1e-6)
    workspace.FeedBlob("i", np.full(7, 5, index))
    with pytest.raises(EnforceNotMet, match="out of range"):
        workspace.RunNet(net)
