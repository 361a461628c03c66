# SPDX-License-Identifier: Apache-2.0
"""The device types MKLDNN and IDEEP are the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.parametrize("kind", [caffe2_pb2.IDEEP, caffe2_pb2.MKLDNN])
def test_blobs_and_operators_of_mkldnn_and_ideep_are_on_the_cpu(kind: int) -> None:
    option = core.DeviceOption(kind)
    values = np.array([[-1.0, 2.0]], np.float32)
    workspace.FeedBlob("x", values, option)
    run_operator("Relu", ["x"], ["y"], device_option=option)
    assert workspace.FetchBlob("y").tolist() == [[0.0, 2.0]]
    assert workspace.FetchTorch("y").device.type == "cpu"


def test_nets_of_mkldnn_and_ideep_run_on_the_cpu() -> None:
    net = core.Net("on_ideep")
    net.RunAllOnIDEEP()
    assert net.Proto().device_option.device_type == caffe2_pb2.IDEEP
    net.CopyIDEEPToCPU(net.Relu(net.CopyCPUToIDEEP("x", "a"), "b"), "c")
    net.CopyMKLToCPU(net.CopyCPUToMKL("c", "d"), "e")
    workspace.FeedBlob("x", np.array([-1.0, 2.0], np.float32))
    workspace.RunNetOnce(net)
    assert workspace.FetchBlob("c").tolist() == [0.0, 2.0]
    assert workspace.FetchBlob("e").tolist() == [0.0, 2.0]
    net.RunAllOnMKL()
    assert net.Proto().device_option.device_type == caffe2_pb2.MKLDNN
    assert workspace.C.use_mkldnn


def test_avx2_is_what_torch_finds() -> None:
    found = torch.backends.cpu.get_cpu_capability()
    assert workspace.C.builtin_cpu_supports_avx2() is found.startswith("AVX")
