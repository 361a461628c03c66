# SPDX-License-Identifier: Apache-2.0
"""Nets and plans that were read, from files and from messages of other classes; predictors."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.internal import api_implementation

from bridge import caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.proto import caffe2_pb2
from bridge.caffe2.proto.caffe2_descriptor import SERIALIZED
from tests.helpers.isolate import run_python
from tests.helpers.operators import operator_class, operator_of
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")

TEXT = """
name: "read"
op { input: "x" output: "y" type: "Relu" }
op { output: "c" type: "ConstantFill"
     arg { name: "shape" ints: 2 } arg { name: "value" f: 3.0 } }
op { input: "y" input: "c" output: "z" type: "Add" }
external_input: "x"
external_output: "z"
"""
PLAN = f"""
name: "plan"
network {{ {TEXT} }}
execution_step {{ name: "twice" num_iter: 2 network: "read" }}
"""


def foreign(kind: str, text: str) -> Any:
    """Parse a message into a class that is not the bridge's."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(SERIALIZED))
    described = pool.FindMessageTypeByName(f"caffe2.{kind}")
    return text_format.Parse(text, message_factory.GetMessageClass(described)())


@pytest.fixture
def fed(fresh_workspace: None) -> None:
    workspace.FeedBlob("x", np.array([-1, 1], np.float32))


@pytest.mark.usefixtures("fed")
@pytest.mark.parametrize("form", ["message", "foreign", "bytes", "bytearray", "core"])
def test_a_net_that_was_read_runs(form: str) -> None:
    message = text_format.Parse(TEXT, caffe2_pb2.NetDef())
    net = {
        "message": message,
        "foreign": foreign("NetDef", TEXT),
        "bytes": message.SerializeToString(),
        "bytearray": bytearray(message.SerializeToString()),
        "core": core.Net(message),
    }[form]
    assert workspace.RunNetOnce(net) is True
    assert workspace.FetchBlob("z").tolist() == [3, 4]
    assert workspace.CreateNet(net) is True
    workspace.FeedBlob("x", np.array([5, 6], np.float32))
    assert workspace.RunNet(net) is True
    assert workspace.FetchBlob("z").tolist() == [8, 9]
    workspace.Workspace.current.run(core.Net(message))


@pytest.mark.usefixtures("fed")
def test_operators_and_plans_run_as_other_classes_and_as_bytes() -> None:
    operator = foreign("OperatorDef", 'input: "x" output: "y" type: "Relu"')
    assert workspace.RunOperatorOnce(operator)
    assert workspace.RunOperatorMultiple(operator.SerializeToString(), 2)
    assert workspace.FetchBlob("y").tolist() == [0, 1]
    for plan in (foreign("PlanDef", PLAN), foreign("PlanDef", PLAN).SerializeToString()):
        assert workspace.RunPlan(plan) is True
        assert workspace.FetchBlob("z").tolist() == [3, 4]
    workspace.Workspace.current.run(foreign("PlanDef", PLAN))


@pytest.mark.parametrize(
    "call",
    [workspace.RunOperatorOnce, workspace.RunNetOnce, workspace.CreateNet, workspace.RunPlan],
)
@pytest.mark.parametrize("given", [TEXT, 3, None, b"\xff\xff", object(), caffe2_pb2.Argument()])
def test_objects_that_are_not_such_a_message_are_refused(call: Any, given: Any) -> None:
    with pytest.raises(EnforceNotMet) as raised:
        call(given)
    refused(raised.value, call.__name__)
    assert workspace.Blobs() == []


def test_a_message_that_lacks_a_required_field_is_refused() -> None:
    op = caffe2_pb2.OperatorDef(type="Relu")
    op.arg.add(name="t").t.segment.SetInParent()
    net = caffe2_pb2.NetDef(name="n", op=[op])
    plan = caffe2_pb2.PlanDef(network=[net])
    plan.execution_step.add(network=["n"])
    for call, message in (
        (workspace.RunOperatorOnce, op),
        (workspace.RunNetOnce, net),
        (workspace.CreateNet, net),
        (workspace.RunPlan, plan),
    ):
        with pytest.raises(EnforceNotMet) as raised:
            call(message)
        refused(raised.value, "segment.begin", call.__name__)


@pytest.mark.parametrize("word", [b"read", b"x", b"z", b"Relu"])
def test_names_that_are_not_utf8_are_refused(word: bytes) -> None:
    workspace.FeedBlob("x", np.array([1], np.float32))
    message = text_format.Parse(TEXT, caffe2_pb2.NetDef()).SerializeToString()
    net = message.replace(bytes([len(word)]) + word, bytes([len(word)]) + b"\xff" * len(word))
    assert net != message
    calls = [
        lambda: workspace.RunNetOnce(net),
        lambda: workspace.CreateNet(net),
        lambda: workspace.Predictor(caffe2_pb2.NetDef(), net),
    ]
    # protobuf without its compiled module refuses the message itself
    if word != b"Relu" and api_implementation.Type() != "python":
        calls.append(lambda: core.Net(caffe2_pb2.NetDef.FromString(net)))
    for call in calls:
        with pytest.raises(EnforceNotMet) as raised:
            call()
        refused(raised.value, "xff", kind=ValueError)
    assert workspace.Blobs() == ["x"] and workspace.Nets() == []


@pytest.mark.parametrize("gives", [5, None, "text", [1, 2]])
def test_a_message_that_serializes_to_other_than_bytes_is_refused(gives: Any) -> None:
    class Odd:
        def SerializeToString(self) -> Any:
            return gives

    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(Odd())
    refused(raised.value, "Odd", type(gives).__name__, kind=TypeError)


def test_a_net_whose_parts_are_of_another_device_runs_on_the_nets() -> None:
    message = text_format.Parse(TEXT, caffe2_pb2.NetDef())
    message.device_option.device_type = caffe2_pb2.OPENGL
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunNetOnce(message)
    refused(raised.value, "OPENGL")


@pytest.mark.usefixtures("fed")
def test_a_net_uses_the_blobs_that_had_the_names_when_it_was_made() -> None:
    message = text_format.Parse(TEXT, caffe2_pb2.NetDef())
    workspace.CreateNet(message)
    tensor = torch.tensor([7.0, 8.0])
    workspace.FeedBlob("x", tensor)
    workspace.RunNet("read")
    assert workspace.FetchBlob("z").tolist() == [10, 11]
    kept = workspace.Workspace.current.blobs["x"]
    workspace.Workspace.current.remove_blob("x")
    kept.feed(np.array([1, 1], np.float32))
    workspace.RunNet("read")
    assert workspace.FetchBlob("z").tolist() == [4, 4]


def test_predictor_takes_and_gives_arrays_apart_from_the_workspace() -> None:
    init = text_format.Parse(
        'name: "init" op { output: "w" type: "GivenTensorFill" '
        'arg { name: "shape" ints: 2 } arg { name: "values" floats: 1 floats: 2 } }',
        caffe2_pb2.NetDef(),
    )
    predict = text_format.Parse(
        'name: "predict" op { input: "data" input: "w" output: "out" type: "Mul" } '
        'external_input: "data" external_input: "w" external_output: "out"',
        caffe2_pb2.NetDef(),
    )
    predictor = workspace.Predictor(init, predict)
    (first,) = predictor.run([np.array([3, 4], np.float32)])
    assert first.tolist() == [3, 8] and first.flags.writeable
    tensor = torch.tensor([5.0, 6.0])
    (second,) = predictor.run({"data": tensor})
    assert second.tolist() == [5, 12] and first.tolist() == [3, 8]
    assert predictor.run([])[0].tolist() == [5, 12]
    with pytest.raises(EnforceNotMet) as raised:
        predictor.run([tensor, tensor, tensor])
    refused(raised.value, "3 inputs", "2")
    with pytest.raises(EnforceNotMet) as raised:
        predictor.run({"other": tensor})
    refused(raised.value, "'other'", kind=KeyError)
    assert workspace.Blobs() == [] and workspace.Nets() == []


def test_a_predictor_may_be_the_first_to_see_an_array() -> None:
    printed = run_python("""
import numpy as np
from bridge.caffe2 import core, workspace

init, net = core.Net("fills"), core.Net("adds")
init.ConstantFill([], ["x"], shape=[2])
net.AddExternalOutput(net.Add(["x", "x"], "y"))
predictor = workspace.Predictor(init.Proto(), net.Proto())
print(predictor.run([np.array([1, 2], np.float32)])[0].tolist())
""")
    assert printed == "[2.0, 4.0]\n"


def test_steps_of_plans_that_report_run_after_the_others_and_instances_repeat() -> None:
    order: list[str] = []
    plan = caffe2_pb2.PlanDef(name="concurrent")
    step = plan.execution_step.add(concurrent_substeps=True, num_concurrent_instances=2)
    for name in ("report", "work"):

        def note(op: Any, name: str = name) -> None:
            order.append(name)

        net = plan.network.add(name=name)
        net.op.append(core.CreateOperator(operator_of(note), [], []))
        step.substep.add(network=[name])
    step.substep[0].run_every_ms = 10
    workspace.RunPlan(plan)
    assert order == ["work", "work", "report"]


def test_one_of_two_threads_that_create_a_net_at_once_creates_it() -> None:
    meeting = threading.Barrier(2, timeout=60)

    class Meets(caffe2.Operator):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            meeting.wait()  # both have found no net of that name

        def RunOnDevice(self) -> None:
            pass

    net = caffe2_pb2.NetDef(name="of_both")
    net.op.append(core.CreateOperator(operator_class(Meets), [], "z"))

    def create(_: int) -> bool:
        try:
            return workspace.CreateNet(net)
        except EnforceNotMet:
            return False

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(create, range(2))) == [False, True]


def test_instances_of_a_step_wait_for_one_another() -> None:
    meeting = threading.Barrier(3, timeout=60)

    def wait(inputs: Any, outputs: Any) -> None:
        meeting.wait()

    net = core.Net("waits")
    net.Python(wait)([], [])
    inner = core.execution_step("instance", net)
    plan = core.Plan("of_instances")
    plan.AddStep(core.execution_step("all", [inner], num_concurrent_instances=3))
    assert workspace.RunPlan(plan)


def test_a_plan_of_many_instances_takes_no_memory_for_them() -> None:
    workspace.FeedBlob("stop", np.array([False]))
    runs: list[None] = []

    def body(op: Any) -> None:
        runs.append(None)
        op.Output(0, [1], "bool").numpy()[:] = len(runs) == 3

    plan = caffe2_pb2.PlanDef()
    net = plan.network.add(name="counts")
    net.op.append(core.CreateOperator(operator_of(body), [], "stop"))
    step = plan.execution_step.add(num_concurrent_instances=2**31 - 1, should_stop_blob="stop")
    step.substep.add(network=["counts"])
    assert workspace.RunPlan(plan)
    assert len(runs) == 3


@pytest.mark.parametrize("how", [{"num_iter": 2**62}, {"should_stop_blob": "never"}])
def test_a_step_of_nothing_ends(how: dict[str, Any]) -> None:
    workspace.FeedBlob("never", np.array([False]))
    plan = caffe2_pb2.PlanDef()
    plan.execution_step.add(**how)
    assert workspace.RunPlan(plan)


def test_a_plan_in_the_background_that_exits_has_not_succeeded() -> None:
    def leave(inputs: Any, outputs: Any) -> None:
        raise SystemExit(3)

    net = core.Net("leaves")
    net.Python(leave)([], [])
    plan = workspace.RunPlanInBackground(core.execution_step("leaving", net))
    plan._thread.join()
    with pytest.raises(EnforceNotMet, match="SystemExit"):
        plan.is_succeeded()


def test_a_plan_that_is_changed_while_it_runs_runs_as_it_was() -> None:
    runs: list[None] = []
    plan = caffe2_pb2.PlanDef()

    def body(op: Any) -> None:
        runs.append(None)
        del plan.execution_step[:]

    net = plan.network.add(name="changes")
    net.op.append(core.CreateOperator(operator_of(body), [], []))
    plan.execution_step.add(network=["changes"], num_iter=2)
    assert workspace.RunPlan(plan)
    assert len(runs) == 2


def test_nets_are_listed_and_deleted() -> None:
    for name in ("b", "a"):
        workspace.CreateNet(caffe2_pb2.NetDef(name=name))
    assert workspace.Nets() == ["a", "b"]
    workspace.DeleteNet("a")
    workspace.DeleteNet("absent")
    assert workspace.Nets() == ["b"]
    for form in (b"b", core.Net(caffe2_pb2.NetDef(name="c")), foreign("NetDef", 'name: "d"')):
        if not isinstance(form, bytes):
            workspace.CreateNet(form)
        workspace.DeleteNet(form)
    assert workspace.Nets() == []
    with pytest.raises(EnforceNotMet) as raised:
        workspace.DeleteNet(3)
    refused(raised.value, "int", kind=TypeError)


class Index:
    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


@pytest.mark.parametrize(("given", "runs"), [(np.int64(2), 2), (Index(3), 3), (True, 1), (-1, 0)])
def test_numbers_of_runs_are_whatever_is_an_index(given: Any, runs: int) -> None:
    seen: list[None] = []
    op = core.CreateOperator(operator_of(lambda op: seen.append(None)), [], [])
    workspace.CreateNet(caffe2_pb2.NetDef(name="counted", op=[op]))
    assert workspace.RunNet("counted", given)
    assert workspace.RunOperatorMultiple(op, given)
    assert len(seen) == 2 * runs


@pytest.mark.parametrize("given", ["2", 2.0, None, [1]])
def test_a_number_of_runs_that_is_not_an_integer_is_refused(given: Any) -> None:
    seen: list[None] = []
    op = core.CreateOperator(operator_of(lambda op: seen.append(None)), [], [])
    net = caffe2_pb2.NetDef(name="uncounted", op=[op])
    workspace.CreateNet(net)
    for call in (
        lambda: workspace.RunNet("uncounted", given),
        lambda: workspace.RunOperatorMultiple(op, given),
        lambda: workspace.BenchmarkNet("uncounted", 1, given),
        lambda: workspace.BenchmarkNetOnce(net, given, 1),
    ):
        with pytest.raises(EnforceNotMet) as raised:
            call()
        refused(raised.value, type(given).__name__, kind=TypeError)
    assert seen == []


def test_a_net_that_is_deleted_while_it_runs_runs_to_its_end() -> None:
    order: list[str] = []

    def first(op: Any) -> None:
        workspace.DeleteNet("ends")
        workspace.ResetWorkspace()
        order.append("first")

    net = caffe2_pb2.NetDef(name="ends")
    for body in (first, lambda op: order.append("second")):
        net.op.append(core.CreateOperator(operator_of(body), [], ["made"]))
    workspace.CreateNet(net)
    assert workspace.RunNet("ends")
    assert order == ["first", "second"]
    assert workspace.Nets() == [] and workspace.Blobs() == []


def test_threads_run_operators_side_by_side() -> None:
    name = operator_of(
        lambda op: op.Output(0, [64], "float32").mutable_data().fill(op.GetSingleArgument("v", 0.0))
    )
    wrong: list[Any] = []

    def work(number: int) -> None:
        op = core.CreateOperator(name, [], f"out{number}", v=float(number))
        for _ in range(300):
            workspace.RunOperatorOnce(op)
            if set(workspace.FetchBlob(f"out{number}").tolist()) != {float(number)}:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_scopes_are_per_thread() -> None:
    seen: list[str] = []
    with core.NameScope("here"), core.DeviceScope(core.DeviceOption(0)):
        thread = threading.Thread(
            target=lambda: seen.extend([core.ScopedName("x"), str(workspace.GetNameScope())])
        )
        thread.start()
        thread.join()
    assert seen == ["x", ""]


def test_a_tensor_message_is_fed_as_its_array() -> None:
    message = foreign("TensorProto", "dims: 2 data_type: INT64 int64_data: 3 int64_data: 4")
    assert workspace.FeedBlob("t", message)
    assert workspace.FetchBlob("t").tolist() == [3, 4]
    assert workspace.FetchBlob("t").dtype == np.int64
    message.dims[0] = 3
    with pytest.raises(EnforceNotMet) as raised:
        workspace.FeedBlob("t", message)
    refused(raised.value, "'t'", "[3]")
    assert workspace.FetchBlob("t").tolist() == [3, 4]
