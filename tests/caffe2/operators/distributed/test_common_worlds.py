# SPDX-License-Identifier: Apache-2.0
"""Common worlds: several at once, worlds that end, worlds without other members."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated
from tests.helpers.operators import run_operator
from tests.helpers.processes import KILLED, feed, fetch, killed, meet, together, wait_for

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def several_worlds(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    run_operator("CloneCommonWorld", ["world"], ["clone"], engine="GLOO")
    run_operator("CreateCommonWorld", ["store"], ["second"], size=n, rank=n - 1 - rank)
    net = core.Net("worlds")
    net.Proto().type, net.Proto().num_workers = "dag", 3
    for i, world in enumerate(["world", "clone", "second"]):
        feed(f"x{i}", np.full(1000, i + rank))
        net.Allreduce([world, f"x{i}"], [f"x{i}"], engine="GLOO")
    workspace.RunNetOnce(net)
    for i in range(3):
        assert fetch(f"x{i}") == [n * i + sum(range(n))] * 1000
    # A world of the same name again, while the first is still there.
    run_operator("CreateCommonWorld", ["store"], ["world"], size=n, rank=rank)
    run_operator("DestroyCommonWorld", ["clone"], ["clone"])
    feed("y", rank)
    run_operator("Allreduce", ["world", "y"], ["y"])
    assert fetch("y") == sum(range(n))
    with pytest.raises(c10.EnforceNotMet, match="DestroyCommonWorld has closed it"):
        run_operator("Allreduce", ["clone", "y"], ["y"])
    assert fetch("y") == sum(range(n))


@isolated
def test_several_common_worlds_work_at_once(tmp_path: Path) -> None:
    together(3, several_worlds, tmp_path)


def one_dies(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    feed("x", np.ones(1000))
    run_operator("Barrier", ["world"], [])  # all have met
    if rank == 1:
        killed()
    with pytest.raises(c10.EnforceNotMet, match="Another process has ended"):
        run_operator("Allreduce", ["world", "x"], ["x"], status_blob="status")
    assert workspace.FetchBlob("status").tolist() == [1]
    with pytest.raises(c10.EnforceNotMet, match="Create one anew"):
        run_operator("Allreduce", ["world", "x"], ["x"])


@isolated
def test_a_process_that_dies_is_an_error_in_all_others(tmp_path: Path) -> None:
    assert together(3, one_dies, tmp_path) == [0, KILLED, 0]


def one_is_late(rank: int, n: int, folder: Path) -> None:
    meet(rank, n, folder)
    if rank == 0:
        with pytest.raises(c10.EnforceNotMet, match=r"within 0\.3 s"):
            run_operator("Barrier", ["world"], [], timeout_ms=300)
        (folder / "done").touch()
    else:
        wait_for(folder / "done")
        with pytest.raises(c10.EnforceNotMet, match="Another process has ended"):
            run_operator("Barrier", ["world"], [])


@isolated
def test_a_process_that_does_not_come_is_an_error(tmp_path: Path) -> None:
    together(2, one_is_late, tmp_path)


def late(rank: int, n: int, folder: Path) -> None:
    if rank == 0:
        with pytest.raises(c10.EnforceNotMet, match=r"has not met the others within 0\.3 s"):
            meet(rank, n, folder, timeout_ms=300)
        (folder / "again").touch()
    wait_for(folder / "again")
    meet(rank, n, folder)
    feed("x", [1.0])
    run_operator("Allreduce", ["world", "x"], ["x"])
    assert fetch("x") == [n]


@isolated
def test_a_process_that_waited_in_vain_can_try_again(tmp_path: Path) -> None:
    together(2, late, tmp_path)


def test_wrong_arguments_of_a_common_world_are_refused(tmp_path: Path) -> None:
    run_operator("FileStoreHandlerCreate", [], ["store"], path=str(tmp_path))
    for arguments, message in [
        ({"size": 0}, "size is 1 or more"),
        ({"size": 2, "rank": 2}, "rank is from 0"),
        ({"size": 1, "engine": "MPI"}, "engine is GLOO or NCCL"),
        ({"size": 1, "transport": "ibverbs"}, "transport is 'tcp'"),
    ]:
        with pytest.raises(c10.EnforceNotMet, match=message):
            run_operator("CreateCommonWorld", ["store"], ["world"], **arguments)
    with pytest.raises(c10.EnforceNotMet, match="need a store"):
        run_operator("CreateCommonWorld", [], ["world"], size=2, rank=0)
    run_operator("CreateCommonWorld", [], ["world"], size=1)
    feed("x", np.ones(2))
    run_operator("Allreduce", ["world", "x"], ["x"])
    assert fetch("x") == [1.0, 1.0]
