# SPDX-License-Identifier: Apache-2.0
"""Collectives over the devices of one process."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_tensors_of_devices_are_summed_gathered_and_scattered():
    from bridge.caffe2.operators.distributed import collectives

    xs = [torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[10.0, 20.0], [30.0, 40.0]])]
    over = collectives.over_devices
    assert over("NCCLReduce", xs, 1)[0].tolist() == [[11, 22], [33, 44]]
    assert xs[1].tolist() == [[10, 20], [30, 40]]
    assert [y.shape for y in over("NCCLAllGather", xs)] == [(2, 2, 2)] * 2
    assert [y.tolist() for y in over("NCCLReduceScatter", xs)] == [[11, 22], [33, 44]]
    with pytest.raises(EnforceNotMet, match="same sizes and type"):
        over("NCCLAllreduce", [xs[0], xs[0][:1]])


def test_there_are_none_on_the_cpu():
    assert core.IsOperator("NCCLAllreduce")
    workspace.FeedBlob("x", np.ones(3, np.float32))
    with pytest.raises(EnforceNotMet, match="NCCLAllreduce"):
        workspace.RunOperatorOnce(core.CreateOperator("NCCLAllreduce", ["x"], ["x"]))


@pytest.mark.cuda
def test_collectives_over_one_device_leave_its_values():
    device = core.DeviceOption(workspace.GpuDeviceType, 0)
    workspace.FeedBlob("x", np.ones(3, np.float32), device)
    for op_type in ("NCCLAllreduce", "NCCLBroadcast"):
        op = core.CreateOperator(op_type, ["x"], ["x"], device_option=device)
        assert workspace.RunOperatorOnce(op)
    workspace.RunOperatorOnce(
        core.CreateOperator("GetGPUMemoryUsage", [], ["usage"], device_option=device)
    )
    assert workspace.FetchBlob("x").tolist() == [1, 1, 1]
    assert workspace.FetchBlob("usage").shape == (2, torch.cuda.device_count())
