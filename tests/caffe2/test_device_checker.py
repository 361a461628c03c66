# SPDX-License-Identifier: Apache-2.0
"""Whether devices compute the same."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.device_checker import DeviceChecker

X = np.array([-1.0, 2.0], np.float32)


def test_one_device_agrees_with_itself() -> None:
    checker = DeviceChecker(1e-6, [core.DeviceOption(0)] * 2)
    before = workspace.CurrentWorkspace()
    operator = core.CreateOperator("Relu", "x", "y")
    assert checker.CheckSimple(operator, [X], [0])
    assert not operator.HasField("device_option")
    net = core.Net("checked")
    net.Relu("x", "y")
    assert checker.CheckNet(net.Proto(), {"x": X})
    assert checker.CheckNet(net.Proto(), {"x": X}, blobs_to_check=["y"], ignore={"y"})
    assert workspace.CurrentWorkspace() == before


def test_results_that_differ_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    net = core.Net("random")
    net.GaussianFill([], "y", shape=[2])
    assert not DeviceChecker(1e-6, [core.DeviceOption(0)] * 2).CheckNet(net.Proto())
    assert "Device option 1 and output y" in capsys.readouterr().out
    operator = core.CreateOperator("GaussianFill", [], "y", shape=[2])
    assert not DeviceChecker(1e-6, [core.DeviceOption(0)] * 2).CheckSimple(operator, [], [0])
