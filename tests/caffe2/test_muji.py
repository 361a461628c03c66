# SPDX-License-Identifier: Apache-2.0
"""Sums of blobs over GPUs; the operators are those of the real Caffe2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, muji, workspace

# A function, the affix, and the operators: the type, inputs > outputs @ the GPU.
OPERATORS = {
    ("Allreduce2", "_r"): """
        Add b0 b1 > b0_r @0
        Copy b0_r > b1_r @1
    """,
    ("Allreduce4", "_r"): """
        Add b0 b1 > b0_r @0
        Add b2 b3 > b2_r @2
        Add b0_r b2_r > b0_r @0
        Copy b0_r > b2_r @2
        Copy b0_r > b1_r @1
        Copy b2_r > b3_r @3
    """,
    ("Allreduce4Group2", "_r"): """
        Add b0 b1 > b0_r @0
        Add b2 b3 > b2_r @2
        Copy b2_r > b2_r_copy @0
        Add b0_r b2_r_copy > b0_r @0
        Copy b0_r > b2_r @2
        Copy b0_r > b1_r @1
        Copy b2_r > b3_r @3
    """,
    ("Allreduce8", "_r"): """
        Add b0 b1 > b0_r @0
        Add b2 b3 > b2_r @2
        Add b4 b5 > b4_r @4
        Add b6 b7 > b6_r @6
        Add b0_r b2_r > b0_r @0
        Add b4_r b6_r > b4_r @4
        Copy b4_r > b4_r_copy @0
        Add b0_r b4_r_copy > b0_r @0
        Copy b0_r > b4_r @4
        Copy b0_r > b2_r @2
        Copy b4_r > b6_r @6
        Copy b0_r > b1_r @1
        Copy b2_r > b3_r @3
        Copy b4_r > b5_r @5
        Copy b6_r > b7_r @7
    """,
    ("AllreduceFallback", "_r"): """
        Copy b0 > b0_r @0
        Copy b1 > b0_r_temp_copy @0
        Add b0_r_temp_copy b0_r > b0_r @0
        Copy b2 > b0_r_temp_copy @0
        Add b0_r_temp_copy b0_r > b0_r @0
        Copy b0_r > b1_r @1
        Copy b0_r > b2_r @2
    """,
    ("AllreduceFallback", ""): """
        Copy b1 > b0_temp_copy @0
        Add b0_temp_copy b0 > b0 @0
        Copy b2 > b0_temp_copy @0
        Add b0_temp_copy b0 > b0 @0
        Copy b0 > b1 @1
        Copy b0 > b2 @2
    """,
}
COUNTS = {"Allreduce2": 2, "Allreduce4": 4, "Allreduce4Group2": 4, "Allreduce8": 8}


def shown(op: Any) -> str:
    gpu = op.device_option.device_id
    return f"{op.type} {' '.join(op.input)} > {' '.join(op.output)} @{gpu}"


def net_of(name: str, affix: str) -> tuple[core.Net, list[Any]]:
    net = core.Net("reduced")
    count = COUNTS.get(name, 3)
    blobs = [net.AddExternalInput(f"b{i}") for i in range(count)]
    return net, list(getattr(muji, name)(net, blobs, affix, list(range(count))))


@pytest.mark.parametrize(("name", "affix"), OPERATORS)
def test_allreduce_adds_the_operators_of_caffe2(name: str, affix: str) -> None:
    net, sums = net_of(name, affix)
    assert [shown(op) for op in net.Proto().op] == [
        line.strip() for line in OPERATORS[name, affix].strip().splitlines()
    ]
    assert [str(blob) for blob in sums] == [f"b{i}{affix}" for i in range(len(sums))]


@pytest.mark.usefixtures("fresh_workspace")
@pytest.mark.parametrize("name", [*COUNTS, "AllreduceFallback"])
def test_allreduce_leaves_the_sum_in_each_blob(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(muji, "OnGPU", lambda gpu_id: muji.OnCPU())
    net, sums = net_of(name, "_r")
    for i in range(len(sums)):
        workspace.FeedBlob(f"b{i}", np.array([2.0**i], np.float32))
    workspace.RunNetOnce(net)
    assert [workspace.FetchBlob(blob).item() for blob in sums] == [2.0 ** len(sums) - 1] * len(sums)


def test_allreduce_chooses_by_number_and_access_of_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = np.zeros((8, 8), bool)
    monkeypatch.setattr(workspace, "GetGpuPeerAccessPattern", lambda: pattern)

    def length(count: int) -> int:
        net = core.Net("chosen")
        muji.Allreduce(net, [net.AddExternalInput(f"b{i}") for i in range(count)])
        return len(net.Proto().op)

    assert [length(count) for count in (2, 4, 8)] == [4, 10, 22]
    pattern[:2, :2] = pattern[2:4, 2:4] = True
    assert [length(count) for count in (2, 4, 8)] == [2, 7, 22]
    pattern[:] = True
    assert [length(count) for count in (2, 4, 8)] == [2, 6, 15]
    with pytest.raises(EnforceNotMet, match="length mismatch: 1 vs 2"):
        muji.Allreduce(core.Net("n"), ["a", "b"], gpu_indices=[0])
