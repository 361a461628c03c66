# SPDX-License-Identifier: Apache-2.0
"""Tasks and groups of them: steps before, after and beside them, outputs, and workspaces."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, schema, workspace
from bridge.caffe2.net_builder import ops
from bridge.caffe2.task import (
    Cluster,
    Node,
    SetupNets,
    Task,
    TaskGroup,
    TaskOutput,
    TaskOutputList,
    WorkspaceType,
    final_output,
    get_setup_nets,
)
from bridge.caffe2.task.session import LocalSession

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_setup_runs_before_and_after_a_task_wherever_it_is_written() -> None:
    with Task() as task:
        with ops.task_init():
            one = ops.Const(1)
        two = ops.Add([one, one])
        with ops.task_exit():
            seven = final_output(ops.Add([two, ops.Const(4)]))
        ops.Add([two, one], [two])
    with LocalSession() as session:
        session.run(task)
        session.run(task)  # as it was compiled the first time
    assert seven.fetch() == 7 and not session.is_open()
    with pytest.raises(AssertionError, match="Session is closed"):
        session.run(task)
    with pytest.raises(AssertionError, match="already been used"):
        task.add_output("x")


def test_instances_of_a_task_have_blobs_of_their_own() -> None:
    with TaskGroup() as group, Task(num_instances=5):
        with ops.task_init():
            shared = ops.CreateCounter([], ["shared"])
        with ops.task_instance_init():
            own = ops.CreateCounter([], ["own"])
        with ops.loop(4):
            ops.CountUp(own)
        with ops.task_instance_exit(), ops.loop(ops.RetrieveCount(own)):
            ops.CountUp(shared)
        with ops.task_exit():
            total = final_output(ops.RetrieveCount(shared))
    LocalSession().run(group)
    assert total.fetch() == 20


def test_local_init_and_exit_of_a_node_run_once_around_all_its_tasks() -> None:
    with TaskGroup(WorkspaceType.GLOBAL) as group, Node("n"):
        with Task():
            with ops.local_init():
                total = ops.Const(100, blob_out=core.BlobReference("total"))
            ops.Const(0)
        with Task():
            with ops.local_exit():
                ops.Add([total, ops.Const(1)], [total])
            out = final_output(total)
    assert group.used_nodes() == ["n"] and group.num_registered_tasks() == 2
    LocalSession().run(group)
    assert out.fetch() == 101 == workspace.FetchBlob("total")


def test_reports_run_at_least_once_after_a_task() -> None:
    with Task() as task:
        with ops.task_init():
            reports = ops.Const(0, blob_out=core.BlobReference("reports"))
        with ops.task_reporter(interval_ms=60_000):
            ops.Add([reports, ops.Const(1)], [reports])
        out = final_output(reports)
    LocalSession().run(task)
    assert out.fetch() >= 1


def test_tasks_of_type_private_leave_their_outputs_only() -> None:
    with TaskGroup() as group, Task():
        kept = final_output(ops.Const(3, blob_out=core.BlobReference("kept")))
        ops.Const(4, blob_out=core.BlobReference("dropped"))
    session = LocalSession()
    session.run(group)
    assert group.workspace_type() == WorkspaceType.PRIVATE
    assert kept.fetch() == 3 and not workspace.HasBlob("dropped")
    with pytest.raises(AssertionError, match="Require global but already have private"):
        type("Other", (LocalSession,), {}).compile(group, WorkspaceType.GLOBAL)


def test_outputs_have_the_structure_of_their_blobs_lists_or_records() -> None:
    record = schema.Struct(("a", schema.Scalar(np.int32, core.BlobReference("b"))))
    outputs = [TaskOutput("x"), TaskOutput(["y", "z"]), TaskOutput(record)]
    listed = TaskOutputList(outputs)
    assert listed.names() == ["x", "y", "z", "b"]
    with pytest.raises(AssertionError, match="not set yet"):
        outputs[0].get()
    with pytest.raises(AssertionError, match="Cannot fetch"):
        outputs[0].fetch()
    with pytest.raises(AssertionError, match="Wrong number"):
        listed.set_values([1])
    values = [np.array([i]) for i in range(4)]
    listed.set_values(values, _fetch_func=lambda value: value + 1)
    assert outputs[0].get() is values[0] and outputs[0].fetch() == 1
    assert [one.item() for one in outputs[1].fetch()] == [2, 3]
    assert outputs[2].fetch().a() == 4


def test_nodes_are_known_to_their_cluster() -> None:
    with Cluster() as cluster, Node("a", gpus=2), Node("b"):
        assert Task(name="named").name == "b/named"
        Node("a", gpus=4, cpus=1)
    assert cluster.nodes() == ["a", "b"]
    assert cluster.node_kwargs() == {"a": {"gpus": 2, "cpus": 1}, "b": {}}
    with TaskGroup() as group:
        assert [Task().name for _ in range(2)] == ["local/task", "local/task:1"]
        group.add(Task(workspace_type=WorkspaceType.PRIVATE, group=TaskGroup()))
        with pytest.raises(AssertionError, match="run in private workspaces"):
            group.add(Task(workspace_type=WorkspaceType.GLOBAL, group=TaskGroup()))


def test_steps_of_all_nodes_can_be_distributed_once() -> None:
    with TaskGroup() as group:
        for node in ("a", "b"):
            with Node(node):
                Task(step=core.Net(f"of_{node}"))
    grouped = group.tasks_by_node()
    assert [task.node for task in grouped.tasks()] == ["a", "b"]
    assert group.tasks_by_node() is grouped
    with pytest.raises(AssertionError, match="multiple times"):
        group.tasks_by_node(lambda node: "one")
    with pytest.raises(AssertionError, match="already used"):
        group.add(Task())


def test_nets_that_run_before_and_after_are_found_once() -> None:
    net, before, after = (core.Net(name) for name in ("body", "before", "after"))
    net.add_attribute(Task.TASK_SETUP, SetupNets([before], after))
    assert get_setup_nets(Task.TASK_SETUP, [net], None) == ([before], [after])
    assert get_setup_nets(Task.TASK_SETUP, [net], None) == ([], [])
    net.add_attribute(Task.TASK_SETUP, SetupNets("name"))
    with pytest.raises(TypeError, match="Unsupported type for setup"):
        get_setup_nets(Task.TASK_SETUP, [net], None)


def test_they_are_shown_as_caffe2_shows_them() -> None:
    assert [repr(one) for one in (Cluster(), Node(), TaskGroup(), TaskOutput([]), Task())] == [
        "Cluster(nodes=[], node_kwargs={})",
        "Node(name=local, kwargs={})",
        "TaskGroup(tasks=[], workspace_type=None, remote_nets=[])",
        "TaskOutput(names=[], values=None)",
        "Task(name=local/task, node=local, outputs=[])",
    ]
