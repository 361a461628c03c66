# SPDX-License-Identifier: Apache-2.0
"""Preferences of engines, and what the machine has."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bridge import caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.base.hardware import has_cuda_support
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")

NAME = "TestEnginesPreferred"


def _gives(number: int) -> type[caffe2.Operator]:
    class Gives(caffe2.Operator):
        def RunOnDevice(self) -> None:
            self.Output(0, [1], "int64").numpy()[...] = number

    return Gives


for _engine, _number in (("", 0), ("A", 1), ("B", 2)):
    caffe2.register_operator(NAME, engine=_engine)(_gives(_number))


@pytest.fixture(autouse=True)
def _no_preferences_are_left() -> Iterator[None]:
    yield
    core.SetEnginePref({}, {})


def ran(engine: str = "") -> int:
    workspace.RunOperatorOnce(core.CreateOperator(NAME, [], "y", engine=engine))
    return int(workspace.FetchBlob("y")[0])


def test_by_type_before_for_all_and_the_operators_own_before_both() -> None:
    assert ran() == 0
    core.SetGlobalEnginePref({0: ["NOBODY", "B"]})
    assert ran() == 2
    core.SetPerOpEnginePref({0: {NAME: ["A"]}})
    assert ran() == 1
    assert ran("B") == 2
    core.SetEnginePref({}, {})
    assert ran() == 0
    core.SetOpEnginePref(NAME, {0: ["B"], 1: ["A"]})
    assert ran() == 2


@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [
        (core.SetEnginePref, (3, {}), TypeError),
        (core.SetEnginePref, ({0: 3}, {}), TypeError),
        (core.SetEnginePref, ({}, {0: "A"}), TypeError),
        (core.SetEnginePref, ({}, {99: ["A"]}), ValueError),
        (core.SetEnginePref, ({0: {"NoSuchType": ["A"]}}, {}), KeyError),
        (core.SetOpEnginePref, ("NoSuchType", {0: ["A"]}), KeyError),
    ],
)
def test_what_is_refused_changes_nothing(
    function: Any, arguments: Any, kind: type[Exception]
) -> None:
    core.SetGlobalEnginePref({0: ["A"]})
    with pytest.raises(kind) as raised:
        function(*arguments)
    refused(raised.value, kind=kind)
    assert ran() == 1


def test_without_a_gpu_there_is_nothing_to_tell() -> None:
    if has_cuda_support:
        pytest.skip("the absence of a GPU: this machine has one")
    assert not workspace.has_gpu_support
    assert not workspace.has_hip_support
    assert workspace.GetCUDAVersion() == workspace.GetCuDNNVersion() == 0
    assert workspace.GetDeviceProperties(0) is None
    assert workspace.GetGPUMemoryInfo() is None
    assert workspace.GetGpuPeerAccessPattern().size == 0


@pytest.mark.cuda
def test_with_a_gpu_torch_tells() -> None:
    assert workspace.has_gpu_support
    assert workspace.GetCUDAVersion() > 9000
    properties = workspace.GetDeviceProperties(0)
    assert properties is not None
    assert properties["totalGlobalMem"] > 0
    memory = workspace.GetGPUMemoryInfo(0)
    assert memory is not None
    assert 0 < memory[0] <= memory[1]
    assert workspace.GetGpuPeerAccessPattern().diagonal().all()
    with pytest.raises(ValueError, match="no GPU") as raised:
        workspace.GetDeviceProperties(99)
    refused(raised.value, kind=ValueError)


def test_what_is_fed_in_a_device_scope_goes_there() -> None:
    with core.DeviceScope(core.DeviceOption(0)):
        assert workspace.FeedBlob("x", np.ones(2, np.float32))
    with core.DeviceScope(core.DeviceOption(1)):
        if has_cuda_support:
            workspace.FeedBlob("x", np.ones(2, np.float32))
            assert workspace.FetchTorch("x").device.type == "cuda"
        else:
            with pytest.raises(RuntimeError) as raised:
                workspace.FeedBlob("x", np.zeros(2, np.float32))
            refused(raised.value, "x")
    assert workspace.FetchBlob("x").tolist() == [1.0, 1.0]
