# SPDX-License-Identifier: Apache-2.0
"""Copies between the memory of the CPU and that of a GPU."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.cuda
def test_copies_between_cpu_and_gpu() -> None:
    workspace.FeedBlob("x", np.arange(3, dtype=np.float32))
    device = core.DeviceOption(1)
    workspace.RunOperatorOnce(core.CreateOperator("CopyCPUToGPU", "x", "g", device_option=device))
    assert workspace.FetchTorch("g").device.type == "cuda"
    workspace.RunOperatorOnce(core.CreateOperator("CopyGPUToCPU", "g", "c", device_option=device))
    assert workspace.FetchTorch("c").device.type == "cpu"
    assert workspace.FetchBlob("c").tolist() == [0.0, 1.0, 2.0]
