# SPDX-License-Identifier: Apache-2.0
"""Tensors from one process to another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import workspace
from tests.helpers.isolate import isolated
from tests.helpers.operators import run_operator
from tests.helpers.processes import feed, fetch, meet, together, wait_for


def round_trip(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    if rank == 0:
        feed("x", np.arange(6).reshape(2, 3), np.int64)
        run_operator("SendTensor", ["world", "x"], [], dst=1, tag=7, engine="GLOO")
        feed("x", [True, False], bool)
        feed("dst", [1], np.int32)
        feed("tag", [8], np.int32)
        run_operator("SendTensor", ["world", "x", "dst", "tag"], [])
        feed("x", [1.5, 2.5])
        run_operator("SendTensor", ["world", "x"], [], dst=1, raw_buffer=1)
        feed("x", np.zeros((0, 3)))
        run_operator("SendTensor", ["world", "x"], [], dst=1)
        for wrong in (0, 2, -1):
            with pytest.raises(c10.EnforceNotMet, match="another process"):
                run_operator("SendTensor", ["world", "x"], [], dst=wrong)
        return
    feed("x", [0.0])
    outputs = ["x", "from", "tag"]
    run_operator("ReceiveTensor", ["world", "x"], outputs, src=0, tag=7, engine="GLOO")
    assert workspace.FetchBlob("x").dtype == np.int64
    assert fetch("x") == [[0, 1, 2], [3, 4, 5]]
    assert (fetch("from"), fetch("tag")) == ([0], [7])
    run_operator("ReceiveTensor", ["world", "x"], outputs, tag=8)  # from anybody
    assert fetch("x") == [True, False]
    assert (fetch("from"), fetch("tag")) == ([0], [8])
    feed("x", [0.0, 0.0])
    address = workspace.FetchTorch("x").data_ptr()
    run_operator("ReceiveTensor", ["world", "x"], outputs, src=0, raw_buffer=1)
    assert fetch("x") == [1.5, 2.5]
    assert workspace.FetchTorch("x").data_ptr() == address
    run_operator("ReceiveTensor", ["world", "x"], outputs, src=0)
    assert workspace.FetchBlob("x").shape == (0, 3)


@isolated
def test_tensors_are_sent_with_their_sizes_or_into_a_fitting_tensor(tmp_path: Path) -> None:
    together(2, round_trip, tmp_path)


def nobody_sends(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    feed("x", [0.0])
    if rank == 0:
        outputs = ["x", "from", "tag"]
        with pytest.raises(c10.EnforceNotMet, match=r"SendTensor within 0\.3 s"):
            run_operator("ReceiveTensor", ["world", "x"], outputs, src=1, timeout_ms=300)
        assert fetch("x") == [0.0]
        (folder / "done").touch()
    else:
        wait_for(folder / "done")


@isolated
def test_a_receiver_does_not_wait_for_ever(tmp_path: Path) -> None:
    together(2, nobody_sends, tmp_path)
