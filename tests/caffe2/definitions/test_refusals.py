# SPDX-License-Identifier: Apache-2.0
"""What nets, steps and plans are not made of is refused, and they are as before."""

from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import brew, core, mobile_exporter, model_helper
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.workspaces import refused

RELU = core.CreateOperator("Relu", ["x"], ["y"])
EMPTY = caffe2_pb2.OperatorDef(type="Relu")
TEXT: Any = b"text"
MODEL = model_helper.ModelHelper("refusing_model")
NO_TEXT = "\ud800"


def net() -> Any:
    made = core.Net("refusing")
    made.Relu("x", "y")
    made.Tanh("y", "z")
    return made


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda net: net.insert_op_at_idx(3, 0), TypeError),
        (lambda net: net.insert_op_at_idx(RELU, -1), AssertionError),
        (lambda net: net.reroute_tensor("x", EMPTY), AssertionError),
        (lambda net: net.reroute_tensor("x", 3), TypeError),
        (lambda net: net.extend_ops([RELU, 3]), TypeError),
        (lambda net: net.extend_ops(3), TypeError),
        (lambda net: net.Clone(3), TypeError),
        (lambda net: net.Clone("c", op_id_mask=[2]), IndexError),
        (lambda net: net.set_rand_seed(2**40), ValueError),
        (lambda net: net.RunAllOnGPU("first"), TypeError),
        (lambda net: net.AddExternalInput("good", NO_TEXT), ValueError),
        (lambda net: net.AddGradientOperators([["z"]]), TypeError),
        (lambda net: net.AddGradientOperators(["z"], skip="all"), TypeError),
        (lambda net: net.Const([1], dtype="nothing"), TypeError),
        (lambda net: net.Relu("x", "y", arg=3), TypeError),
        (lambda net: net.Relu("x", "y", random_seed=-1), ValueError),
        (lambda net: net.Python((lambda: None, (), {}))("x", "y"), RuntimeError),
        (lambda net: net.Python((print, 3, {}))("x", "y"), TypeError),
    ],
)
def test_a_refused_change_leaves_the_net_as_it_was(change: Any, kind: type[Exception]) -> None:
    made = net()
    before = made.Proto().SerializeToString()
    with pytest.raises(EnforceNotMet) as raised:
        change(made)
    refused(raised.value, kind=kind)
    assert made.Proto().SerializeToString() == before


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda step: step.SetIter("3"), TypeError),
        (lambda step: step.SetIter(2**70), ValueError),
        (lambda step: step.SetNumConcurrentInstances(2**40), ValueError),
        (lambda step: step.SetOnlyOnce("yes"), TypeError),
        (lambda step: step.SetCreateWorkspace(0.5), TypeError),
        (lambda step: step.SetConcurrentSubsteps(None), TypeError),
        (lambda step: step.RunEveryMillis("often"), TypeError),
        (lambda step: step.SetReportNet(net(), "often"), TypeError),
        (lambda step: step.AddSubstep(3), TypeError),
        (lambda step: step.AddSubstep(step), AssertionError),
        (lambda step: step.AddSubstep(core.execution_step("s", renamed())), AssertionError),
    ],
)
def test_a_refused_change_leaves_the_step_as_it_was(change: Any, kind: type[Exception]) -> None:
    step = core.ExecutionStep("step")
    inner = core.Net("inner of a step")
    inner.Proto().name = "taken"
    step.AddSubstep(core.execution_step("first", inner))
    before = step.Proto().SerializeToString(), step.Nets(), list(step.Substeps())
    with pytest.raises(EnforceNotMet) as raised:
        change(step)
    refused(raised.value, kind=kind)
    assert (step.Proto().SerializeToString(), step.Nets(), step.Substeps()) == before
    step.SetIter(True)
    assert step.Proto().num_iter == 1


def renamed() -> Any:
    made = net()
    made.Proto().name = "taken"
    return made


def test_a_refused_step_leaves_the_plan_as_it_was() -> None:
    plan = core.Plan("plan")
    plan.AddStep(core.execution_step("first", renamed()))
    before = plan.Proto().SerializeToString()
    for step in (
        core.ExecutionStep("by name", ["somewhere"]),
        core.execution_step("second", [net(), renamed()]),
        3,
    ):
        with pytest.raises(EnforceNotMet) as raised:
            plan.AddStep(step)  # type: ignore[arg-type]
        refused(raised.value, kind=AssertionError)
        assert plan.Proto().SerializeToString() == before
        assert len(plan.Steps()) == len(plan.Nets()) == 1


def test_a_net_that_a_step_has_by_name_may_come_as_an_object() -> None:
    made = net()
    outer = core.ExecutionStep("outer")
    outer.AddSubstep(core.ExecutionStep("by name", [made.Name()]))
    assert outer.Nets() == [None]
    outer.AddSubstep(core.execution_step("object", made))
    plan = core.Plan(outer)
    assert plan.Nets() == [made]
    assert [one.name for one in plan.Proto().network] == [made.Name()]


@pytest.mark.parametrize("make", [core.Net, core.ExecutionStep, core.Plan])
def test_names_that_are_not_utf8_are_refused(make: Any) -> None:
    with pytest.raises(EnforceNotMet) as raised:
        make(NO_TEXT)
    refused(raised.value, "name", kind=ValueError)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (lambda: core.ScopedName(3), TypeError),
        (lambda: core.ScopedName(b"\xff"), ValueError),
        (lambda: core.BlobReference(b"\xff"), ValueError),
        (lambda: core.DeviceOption("cpu"), TypeError),  # type: ignore[arg-type]
        (lambda: core.DeviceOption(0, random_seed=2**40), ValueError),
        (lambda: core.DeviceOption(0, extra_info=[3]), TypeError),
        (lambda: core.CreateOperator("Relu", "x", "y", name=3), TypeError),  # type: ignore[arg-type]
        (lambda: core.CreateOperator("Relu", "x", "y", debug_info=b"\xff"), ValueError),  # type: ignore[arg-type]
        (lambda: core.CreatePythonOperator((print,), [], []), AssertionError),
        (lambda: core.IR(3), TypeError),  # type: ignore[arg-type]
        (lambda: core.GradientRegistry.GetGradientForOp(RELU, 3), TypeError),  # type: ignore[arg-type]
        (lambda: mobile_exporter.add_tensor(EMPTY, "s", TEXT), ValueError),
        (lambda: brew.conv(MODEL, "x", "y", 3, 4, [1]), ValueError),
        (lambda: brew.conv(MODEL, "x", "y", 3, 4, 1, group=0), ValueError),
    ],
)
def test_wrong_names_devices_and_operators_are_refused(call: Any, kind: type[Exception]) -> None:
    with pytest.raises(EnforceNotMet) as raised:
        call()
    refused(raised.value, kind=kind)
