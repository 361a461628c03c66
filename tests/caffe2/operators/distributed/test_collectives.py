# SPDX-License-Identifier: Apache-2.0
"""Collectives of two to four processes. The values are those of Caffe2's own tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bridge
from bridge import c10
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated
from tests.helpers.operators import run_operator
from tests.helpers.processes import feed, fetch, meet, together


def sums(rank: int, n: int, folder: Path, dtype: str) -> None:
    meet(rank, n, folder)
    feed("a", [[rank, 1], [2, 3]], dtype)
    feed("b", [[10 * rank, 1], [2, 3]], dtype)
    before = [workspace.FetchTorch(name).data_ptr() for name in "ab"]
    net = core.Net("sums")
    net.Allreduce(["world", "a", "b"], ["a", "b"], engine="GLOO")
    workspace.CreateNet(net)
    workspace.RunNet(net)
    expected = [[11 * sum(range(n)), 2 * n], [4 * n, 6 * n]]
    assert fetch("a") == fetch("b") == expected
    assert [workspace.FetchTorch(name).data_ptr() for name in "ab"] == before
    workspace.RunNet(net)
    assert fetch("a") == (np.array(expected) * 2 * n).tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@isolated
def test_allreduce_adds_all_blobs_of_all_processes_in_place(n: int, tmp_path: Path) -> None:
    together(n, sums, tmp_path, "float32")


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8"])
@isolated
def test_allreduce_sums_other_types(dtype: str, tmp_path: Path) -> None:
    together(2, sums, tmp_path, dtype)


def others(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    feed("a", np.arange(6).reshape(2, 3) + 10 * rank)
    feed("b", np.arange(6).reshape(2, 3) + 100 * rank)
    run_operator("Allgather", ["world", "a", "b"], ["all"], engine="GLOO")
    parts = [np.arange(6) + scale * one for one in range(n) for scale in (10, 100)]
    assert fetch("all") == np.concatenate(parts).tolist()

    run_operator("Reduce", ["world", "a"], ["total"], root=1, engine="GLOO")
    assert fetch("a") == (np.arange(6).reshape(2, 3) + 10 * rank).tolist()
    if rank == 1:
        expected = n * np.arange(6).reshape(2, 3) + 10 * sum(range(n))
        assert fetch("total") == expected.tolist()

    address = workspace.FetchTorch("a").data_ptr()
    run_operator("Broadcast", ["world", "a", "b"], ["a", "b"], root=1, engine="GLOO")
    assert fetch("a") == fetch("b") == (np.arange(6).reshape(2, 3) + 10).tolist()
    assert workspace.FetchTorch("a").data_ptr() == address
    feed("flag", [rank == 0], bool)
    run_operator("Broadcast", ["world", "flag"], ["flag"])
    assert fetch("flag") == [True]

    feed("x", np.arange(2 * n + 1) + rank)
    counts = [2] * (n - 1) + [3]
    feed("counts", counts, np.int32)
    run_operator("ReduceScatter", ["world", "x", "counts"], ["x", "counts"], engine="GLOO")
    expected = n * np.arange(2 * n + 1) + sum(range(n))
    assert fetch("x")[: counts[rank]] == expected[2 * rank : 2 * rank + counts[rank]].tolist()
    run_operator("Barrier", ["world"], [], engine="GLOO")
    feed("none", np.zeros((0, 3)))
    run_operator("Allreduce", ["world", "none"], ["none"])
    feed("scalar", rank + 1)
    run_operator("Allreduce", ["world", "scalar"], ["scalar"])
    assert fetch("scalar") == n * (n + 1) / 2


@pytest.mark.parametrize("n", [2, 4])
@isolated
def test_the_other_collectives_give_the_values_of_caffe2(n: int, tmp_path: Path) -> None:
    together(n, others, tmp_path)


def refused(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    feed("x", [1.0, 2.0])
    feed("other", [1.0])
    feed("flags", [True], bool)
    feed("counts", [1, 2], np.int32)
    for op_type, inputs, arguments in [
        ("Allreduce", ["world", "x", "other"], {}),
        ("Allreduce", ["world", "flags"], {}),
        ("Broadcast", ["world", "x"], {"root": 2}),
        ("ReduceScatter", ["world", "x", "counts"], {}),
        ("Reduce", ["world", "flags"], {}),
    ]:
        outputs = ["y"] if op_type == "Reduce" else inputs[1:]
        with pytest.raises(c10.EnforceNotMet):
            run_operator(op_type, inputs, outputs, **arguments)
    feed("x", [1.0])  # no process has begun anything: the common world can still be used
    run_operator("Allreduce", ["world", "x"], ["x"])
    assert fetch("x") == [n]
    frozen = np.arange(3.0)
    frozen.flags.writeable = False
    workspace.FeedBlob("x", bridge.from_dlpack(frozen))
    run_operator("Allreduce", ["world", "x"], ["x"])
    assert fetch("x") == [0.0, n, 2.0 * n]
    assert frozen.tolist() == [0.0, 1.0, 2.0]


@isolated
def test_wrong_arguments_are_refused_before_anything_is_sent(tmp_path: Path) -> None:
    together(2, refused, tmp_path)


def of_other_sizes(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    for op_type in ("Allreduce", "Broadcast", "Allgather", "Reduce"):
        for mine, dtype in [(np.ones(3 + rank), "float32"), (np.ones(3), ["int32", "int64"][rank])]:
            feed("x", mine, dtype)
            outputs = ["x"] if op_type in ("Allreduce", "Broadcast") else ["y"]
            with pytest.raises(c10.EnforceNotMet, match="blobs of one size and type"):
                run_operator(op_type, ["world", "x"], outputs, engine="GLOO")
    feed("x", [1.0])  # the common world can still be used
    run_operator("Allreduce", ["world", "x"], ["x"])
    assert fetch("x") == [n]


@isolated
def test_blobs_of_other_sizes_in_other_processes_are_an_error_in_all(tmp_path: Path) -> None:
    together(2, of_other_sizes, tmp_path)
