# SPDX-License-Identifier: Apache-2.0
"""Registering operators: by name, device and engine."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def made(value: float) -> type[caffe2.Operator]:
    class Makes(caffe2.Operator):
        def RunOnDevice(self) -> None:
            self.Output(0, [1], "float32").mutable_data()[0] = value

    return Makes


def value_of(op: object) -> float:
    workspace.RunOperatorOnce(op)
    return float(workspace.FetchBlob("y")[0])


def test_gives_the_class_back_and_lists_the_name() -> None:
    cls = made(1)
    assert caffe2.register_operator("TestRegistryListed")(cls) is cls
    names = workspace.RegisteredOperators()
    assert "TestRegistryListed" in names and "Relu" in names and "Python" in names
    assert names == sorted(names)
    assert core.IsOperator("TestRegistryListed") and not core.IsOperator("TestRegistryAbsent")


def test_another_class_does_not_take_a_name() -> None:
    caffe2.register_operator("TestRegistryTaken")(made(1))

    class Other(caffe2.Operator):
        pass

    with pytest.raises(EnforceNotMet) as raised:
        caffe2.register_operator("TestRegistryTaken")(Other)
    refused(raised.value, "TestRegistryTaken", "Makes", kind=ValueError)
    with pytest.raises(EnforceNotMet):
        caffe2.register_operator("Relu")(Other)


def test_a_class_registered_before_the_built_in_ones_are_loaded_keeps_their_name() -> None:
    code = """
from bridge import caffe2
from bridge.caffe2 import core, workspace
@caffe2.register_operator("Relu")
class Mine(caffe2.Operator):
    def RunOnDevice(self):
        self.Output(0, [1], "float32").numpy()[0] = 3
workspace.RunOperatorOnce(core.CreateOperator("ConstantFill", [], "x", shape=[1], value=-1.0))
workspace.RunOperatorOnce(core.CreateOperator("Relu", "x", "y"))
assert workspace.FetchBlob("y").tolist() == [3]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=300)


def test_workspace_loads_no_operators_and_no_protobuf() -> None:
    code = """
import sys
import bridge
assert "bridge.caffe2.workspaces" not in sys.modules
import bridge.caffe2.workspace
slow = ("bridge.caffe2.operators", "bridge.caffe2.core.net", "google.protobuf", "torch", "logging")
assert not [name for name in sys.modules if name.startswith(slow)]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=300)


def test_nets_are_made_without_what_runs_them() -> None:
    code = """
import sys
import bridge.caffe2.core.device_copies, bridge.caffe2.core.plan
import bridge.caffe2.modeling.predictor_net
assert not [name for name in sys.modules if name.startswith("bridge.caffe2.execution")]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=300)


def test_the_same_class_again_takes_the_place_of_the_first_and_nets_keep_theirs() -> None:
    caffe2.register_operator("TestRegistryAgain")(made(1))
    op = core.CreateOperator("TestRegistryAgain", [], "y")
    net = core.Net("again")
    net.TestRegistryAgain([], "y")
    workspace.CreateNet(net)
    assert value_of(op) == 1
    caffe2.register_operator("TestRegistryAgain")(made(2))
    assert value_of(op) == 2
    workspace.RunNet(net)
    assert workspace.FetchBlob("y").tolist() == [1]


def test_a_class_declares_its_schema_and_its_gradient() -> None:
    caffe2.register_operator(
        "TestRegistrySchema",
        inputs="1-2",
        outputs=1,
        inplace=[(0, 0)],
        gradient="TestRegistrySchema g0 > 0",
    )(made(5))
    workspace.FeedBlob("x", np.zeros(1, np.float32))
    workspace.FeedBlob("y", np.zeros(1, np.float32))
    assert value_of(core.CreateOperator("TestRegistrySchema", ["y"], ["y"])) == 5
    for inputs, words in (([], "given 0 inputs"), (["x", "y"], "cannot work in place")):
        with pytest.raises(EnforceNotMet, match=words):
            value_of(core.CreateOperator("TestRegistrySchema", inputs, ["y"]))
    op = core.CreateOperator("TestRegistrySchema", ["x"], ["y"])
    gradients, (name,) = core.GradientRegistry.GetGradientForOp(op, ["y_grad"])
    assert [list(one.input) for one in gradients] == [["y_grad"]] and name == "x_grad"
    with pytest.raises(EnforceNotMet, match="'few' outputs"):
        caffe2.register_operator("TestRegistrySchema", inputs=1, outputs="few")


def test_an_operator_runs_on_the_devices_it_is_registered_for() -> None:
    caffe2.register_operator("TestRegistryCuda", devices=("cuda",))(made(1))
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(core.CreateOperator("TestRegistryCuda", [], "y"))
    refused(raised.value, "cuda", "not on cpu")
    caffe2.register_operator("TestRegistryCuda", devices="cpu")(made(2))
    assert value_of(core.CreateOperator("TestRegistryCuda", [], "y")) == 2
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(
            core.CreateOperator("TestRegistryCuda", [], "y", device_option=core.DeviceOption(3))
        )
    refused(raised.value, "OPENGL", "CPU and CUDA")


def test_by_engine_with_the_plain_one_where_there_is_none() -> None:
    caffe2.register_operator("TestRegistryEngine")(made(1))
    caffe2.register_operator("TestRegistryEngine", engine="FAST")(made(2))
    for engine, value in (("FAST", 2), ("", 1), ("OTHER", 1), ("OTHER,FAST", 2)):
        op = core.CreateOperator("TestRegistryEngine", [], "y", engine=engine)
        assert value_of(op) == value
    assert "TestRegistryEngine_ENGINE_FAST" in workspace.RegisteredOperators()
    assert core.IsOperatorWithEngine("TestRegistryEngine", "FAST")
    assert not core.IsOperatorWithEngine("TestRegistryEngine", "OTHER")


@pytest.mark.parametrize(
    ("name", "devices"),
    [("", ("cpu",)), (3, ("cpu",)), ("X", ()), ("X", ("nowhere",)), ("X", 3), ("X", None)],
)
def test_wrong_names_and_devices_are_refused(name: Any, devices: object) -> None:
    with pytest.raises(EnforceNotMet):
        caffe2.register_operator(name, devices=devices)


@pytest.mark.parametrize("engine", [None, 3, b"FAST"])
def test_wrong_engines_are_refused(engine: Any) -> None:
    with pytest.raises(EnforceNotMet) as raised:
        caffe2.register_operator("X", engine=engine)
    refused(raised.value, repr(engine), kind=TypeError)


@pytest.mark.parametrize("devices", ["cpu", c10.CPU, c10.Device("cpu"), [c10.CPU], {"cpu"}])
def test_devices_are_given_in_every_form(devices: object) -> None:
    name = f"TestRegistryForm{type(devices).__name__}"
    caffe2.register_operator(name, devices=devices)(made(4))
    assert value_of(core.CreateOperator(name, [], "y")) == 4


@pytest.mark.parametrize("cls", [3, int, np.ndarray])
def test_a_class_that_is_not_an_operator_is_refused(cls: object) -> None:
    with pytest.raises(EnforceNotMet):
        caffe2.register_operator("TestRegistryNone")(cls)  # type: ignore[type-var]
    assert not core.IsOperator("TestRegistryNone")


def test_a_name_like_it_is_suggested() -> None:
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(core.CreateOperator("Sofmax", "x", "y"))
    refused(raised.value, "'Sofmax'", "'Softmax'", kind=KeyError)
    with pytest.raises(AttributeError, match="Softmax"):
        core.Net("near").Sofmax("x", "y")


def test_own_operators_need_no_built_in_ones_and_no_torch() -> None:
    code = """
import sys
import numpy as np
from bridge import caffe2
from bridge.caffe2 import core, workspace
@caffe2.register_operator("Mine")
class Mine(caffe2.Operator):
    def RunOnDevice(self):
        self.Output(0, [1], "float32").numpy()[0] = 3
workspace.RunOperatorOnce(core.CreateOperator("Mine", [], "y"))
assert workspace.FetchBlob("y").tolist() == [3]
assert not [name for name in sys.modules if name.startswith("bridge.caffe2.operators")]
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=300)


def test_the_first_torch_tensor_of_a_process_may_be_an_operators() -> None:
    code = """
from bridge.caffe2 import core, workspace
workspace.RunOperatorOnce(core.CreateOperator("GivenTensorFill", [], "y", shape=[1], values=[3.0]))
assert workspace.FetchBlob("y").tolist() == [3]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=300)


@pytest.mark.cuda
@pytest.mark.parametrize("op_type", ["ConstantFill", "Relu"])
def test_a_gpu_that_is_not_there_is_refused(op_type: str) -> None:
    count = torch.cuda.device_count()
    inputs = ["x"] if op_type == "Relu" else []
    workspace.FeedBlob("x", np.ones(2, np.float32), "cuda:0")
    absent = core.DeviceOption(1, count)  # CUDA
    op = core.CreateOperator(op_type, inputs, ["y"], device_option=absent)
    with pytest.raises(EnforceNotMet, match=f"cuda:{count}, and torch sees {count} CUDA devices"):
        workspace.RunOperatorOnce(op)
    assert not workspace.HasBlob("y")
