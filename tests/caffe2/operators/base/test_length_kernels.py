# SPDX-License-Identifier: Apache-2.0
"""Segments by kernels, held against NumPy, in runs with other sizes; what is wrong is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

LENGTHS = [[2, 0, 3], [2, 0, 3], [2, 0, 3], [], [0, 0], [1, 40, 7, 0]]


def create(op_type: str, inputs: list[str], **args: Any) -> str:
    net = core.Net(f"of_{op_type}")
    net.Proto().op.append(core.CreateOperator(op_type, inputs, ["y"], **args))
    workspace.CreateNet(net, input_blobs=inputs)
    return net.Name()


def run(net: str, **feeds: Any) -> np.ndarray:
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    workspace.RunNet(net)
    return workspace.FetchBlob("y")


def test_lengths_give_ids_and_places_in_their_segments() -> None:
    ids = create("LengthsToSegmentIds", ["l"])
    places = create("LengthsRangeFill", ["l"])
    for lengths in LENGTHS:
        found = run(ids, l=np.array(lengths, np.int32))
        assert found.dtype == np.int32
        assert found.tolist() == np.repeat(np.arange(len(lengths)), lengths).tolist()
        found = run(places, l=np.array(lengths, np.int32))
        assert found.tolist() == [i for length in lengths for i in range(length)]
    for net in (ids, places):
        with pytest.raises(RuntimeError, match="must not be negative"):
            run(net, l=np.int32([1, -1]))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_ids_give_the_lengths_of_their_segments(kind: type) -> None:
    net = create("SegmentIdsToLengths", ["i"])
    for lengths in LENGTHS:
        ids = np.repeat(np.arange(len(lengths)), lengths).astype(kind)
        used = len(lengths) if not ids.size else ids[-1] + 1
        assert run(net, i=ids).tolist() == (lengths[:used] if ids.size else [])
    for wrong in ([0, 2, 1], [-1, 0]):
        with pytest.raises(RuntimeError, match="are sorted, and not negative"):
            run(net, i=np.array(wrong, kind))


def test_lengths_max_gives_the_greatest_elements_of_segments() -> None:
    net = create("LengthsMax", ["x", "l"])
    for lengths in LENGTHS:
        for width in (1, 5, 64):
            x = np.random.RandomState(width).randn(sum(lengths), width).astype(np.float32)
            ends = np.cumsum(lengths, dtype=int)
            parts = [x[end - n : end] for end, n in zip(ends, lengths, strict=True)]
            wanted = [part.max(0) if len(part) else np.zeros(width) for part in parts]
            found = run(net, x=x, l=np.array(lengths, np.int32))
            np.testing.assert_array_equal(found, np.reshape(wanted, (len(lengths), width)))
    with pytest.raises(RuntimeError, match="lengths add up to 2, but there are 48 rows"):
        run(net, l=np.int32([1, 1]))


@pytest.mark.parametrize("op_type", ["SortedSegmentSum", "UnsortedSegmentSum"])
def test_segment_sums_add_rows_and_refuse_wrong_ids(op_type: str) -> None:
    args = {"num_segments": 3} if op_type.startswith("Un") else {}
    net = create(op_type, ["x", "i"], **args)
    for ids in ([0, 0, 1, 2], [0, 0, 1, 2], [0, 0, 1, 2], [0, 1, 1, 1, 1, 2], [0, 1, 2]):
        x = np.random.RandomState(len(ids)).randn(len(ids), 33).astype(np.float32)
        wanted = np.zeros((3, 33), np.float32)
        np.add.at(wanted, ids, x)
        np.testing.assert_allclose(run(net, x=x, i=np.int32(ids)), wanted, rtol=1e-6)
    wrong, said = ([0, 2, 2], "have no gaps") if not args else ([0, 3, 1], "out of range")
    with pytest.raises(RuntimeError, match=said):
        run(net, i=np.int32(wrong))
