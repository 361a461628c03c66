# SPDX-License-Identifier: Apache-2.0
"""The time of runs, and random inputs for them."""

from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.operators import operator_of

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_benchmarks_give_milliseconds() -> None:
    runs: list[None] = []
    net = caffe2_pb2.NetDef(name="timed")
    net.op.append(core.CreateOperator(operator_of(lambda op: runs.append(None)), [], []))
    workspace.CreateNet(net)
    (took,) = workspace.BenchmarkNet("timed", 1, 4)
    assert 0 < took < 60_000 and len(runs) == 5
    assert len(workspace.BenchmarkNetOnce(net, 1, 4, True)) == 2
    assert len(runs) == 5 + 1 + 4 + 4


def test_random_inputs_have_the_sizes_and_types_that_are_asked_for() -> None:
    net = core.Net("random_inputs")
    net.FC(["x", "w", "b"], "y")
    net.Gather(["y", "i"], "z")
    workspace.FillRandomNetworkInputs(
        net,
        [[[2, 3], [4, 3], [4]], [[2, 4], [5]]],
        [["float", "float", "float"], ["float", "int64_t"]],
    )
    assert workspace.Blobs() == ["b", "i", "w", "x"]
    weights, indices = workspace.FetchBlob("w"), workspace.FetchBlob("i")
    assert (weights.shape, weights.dtype, indices.dtype) == ((4, 3), np.float32, np.int64)
    assert 0 <= weights.min() <= weights.max() < 1
    assert workspace.RunNetOnce(net)


@pytest.mark.parametrize(
    ("sizes", "types"),
    [
        ([], []),
        ([[[2, 3]]], [["float"]]),
        ([[[2], [2], [-1]]], [["float"] * 3]),
        ([[[2]] * 3], [["half"] * 3]),
        ([[[2**50]] * 3], [["float"] * 3]),
        (3, [["float"] * 3]),
        ([3], [3]),
    ],
)
def test_random_inputs_that_do_not_fit_are_refused(sizes: Any, types: Any) -> None:
    net = core.Net("random_inputs")
    net.FC(["x", "w", "b"], "y")
    with pytest.raises(EnforceNotMet, match="FillRandomNetworkInputs"):
        workspace.FillRandomNetworkInputs(net, sizes, types)
    assert workspace.Blobs() == []
