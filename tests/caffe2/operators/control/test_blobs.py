# SPDX-License-Identifier: Apache-2.0
"""Copies between the memory of the CPU and that of GPUs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.cuda
def test_copy_operators_move_between_cpu_and_gpu() -> None:
    workspace.FeedBlob("x", np.arange(3, dtype=np.float32))
    device = core.DeviceOption(1)
    workspace.RunOperatorOnce(core.CreateOperator("CopyCPUToGPU", "x", "g", device_option=device))
    assert workspace.FetchTorch("g").device.type == "cuda"
    workspace.RunOperatorOnce(core.CreateOperator("CopyGPUToCPU", "g", "c", device_option=device))
    assert workspace.FetchTorch("c").device.type == "cpu"
    assert workspace.FetchBlob("c").tolist() == [0.0, 1.0, 2.0]


@pytest.mark.cuda
def test_copy_takes_memory_of_another_gpu_and_other_operators_refuse_it() -> None:
    """Copy takes memory of another GPU, as does CopyGPUToCPU; no other operator does."""
    last = torch.cuda.device_count() - 1
    there = core.DeviceOption(caffe2_pb2.CUDA, last)
    net = core.Net("net")
    net.Copy("x", "y", device_option=there)
    net.CopyGPUToCPU("x", "back", device_option=there)
    workspace.FeedBlob("x", np.zeros(3, np.float32), "cuda:0")
    workspace.CreateNet(net)
    for i in range(8):  # the operators are recorded after some runs
        device = last if i == 4 else 0  # and the input is elsewhere then
        workspace.FeedBlob("x", np.full(3, i, np.float32), f"cuda:{device}")
        workspace.RunNet(net)
        y = workspace.FetchTorch("y")
        assert y.device == torch.device("cuda", last)
        assert y.data_ptr() != workspace.FetchTorch("x").data_ptr()
        assert y.tolist() == workspace.FetchBlob("back").tolist() == [i, i, i]
    if last:
        with pytest.raises(EnforceNotMet, match="by the operator Copy,"):
            workspace.RunOperatorOnce(core.CreateOperator("Relu", "x", "z", device_option=there))


@pytest.mark.cuda
def test_copies_are_inserted_where_operators_are_on_several_gpus() -> None:
    last = torch.cuda.device_count() - 1
    net = core.Net("net")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, 0)):
        net.Relu("x", "y")
    with core.DeviceScope(core.DeviceOption(caffe2_pb2.CUDA, last)):
        net.Relu("y", "z")
    places = {"x": core.DeviceOption(caffe2_pb2.CPU)}
    copied, _ = core.InjectCrossDeviceCopies(net, places)
    workspace.FeedBlob("x", np.array([-1.0, 2.0], np.float32))
    workspace.RunNetOnce(copied)
    assert workspace.FetchTorch("z").device == torch.device("cuda", last)
    assert workspace.FetchBlob("z").tolist() == [0.0, 2.0]
