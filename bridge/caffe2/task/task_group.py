# SPDX-License-Identifier: Apache-2.0
"""Task and TaskGroup: steps and their outputs, which run at the same time on nodes of a Cluster.

Follows caffe2/python/task.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.annotation import Any
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.core.net import Net
from bridge.caffe2.core.steps import ExecutionStep, execution_step, to_execution_step
from bridge.caffe2.modeling.context import DefaultManaged, Managed
from bridge.caffe2.schema.columns import from_blob_list
from bridge.caffe2.schema.field import Field
from bridge.caffe2.task.builder import NetBuilder, require
from bridge.caffe2.task.setup_nets import add_setup_steps, get_setup_nets


class Cluster(DefaultManaged):
    """The nodes that were named inside it, in order, and their properties."""

    def __init__(self) -> None:
        self._node_kwargs: dict[str, dict[str, Any]] = {}

    def add_node(self, node: Node) -> None:
        """Add a node; one of a name that is there already replaces nothing."""
        self._node_kwargs[str(node)] = {**node.kwargs(), **self._node_kwargs.get(str(node), {})}

    def nodes(self) -> list[str]:
        """Return the names of the nodes."""
        return list(self._node_kwargs)

    def node_kwargs(self) -> dict[str, dict[str, Any]]:
        """Return the properties of each node, by its name."""
        return self._node_kwargs

    def __repr__(self) -> str:
        return f"Cluster(nodes={self.nodes()}, node_kwargs={self.node_kwargs()})"


class Node(DefaultManaged):
    """The node of the tasks that are made inside it; only its name counts."""

    def __init__(self, node: Any = "local", **kwargs: Any) -> None:
        self._name = str(node)
        self._kwargs = kwargs
        Cluster.current().add_node(self)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"Node(name={self._name}, kwargs={self._kwargs})"

    def kwargs(self) -> dict[str, Any]:
        """Return its properties."""
        return self._kwargs


class WorkspaceType:
    """Where tasks run: a child workspace that ends with the run, or the session's own."""

    PRIVATE = "private"
    GLOBAL = "global"


class TaskOutput:
    """The output of a task: a blob, a list of blobs or a record."""

    def __init__(self, names: Any) -> None:
        self._schema = names if isinstance(names, Field) else None
        blobs = names.field_blobs() if isinstance(names, Field) else names
        self._is_scalar = type(blobs) not in (tuple, list)
        self.names: Any = [blobs] if self._is_scalar else blobs
        self._values: Any = None
        self._fetch_func: Callable[[Any], Any] | None = None

    def set(self, values: Any, _fetch_func: Callable[[Any], Any] | None = None) -> None:
        """Set the blobs that hold the output, and the function that fetches one."""
        require(len(values) == len(self.names), "There is one value per name.", "TaskOutput.set")
        self._values, self._fetch_func = values, _fetch_func

    def get(self) -> Any:
        """Return the blobs that hold the output.

        Raises EnforceNotMet, also an AssertionError: no session has run the task.
        """
        require(self._values is not None, "Output value not set yet.", "TaskOutput.get")
        return self._shaped(self._values)

    def fetch(self) -> Any:
        """Return the values of the blobs, as arrays.

        Raises EnforceNotMet, also an AssertionError: no session has run the task.
        """
        fetch = self._fetch_func
        if fetch is None:
            require(False, "Cannot fetch value for this output.", "TaskOutput.fetch")
            return None
        return self._shaped([fetch(blob) for blob in self._values])

    def _shaped(self, values: Any) -> Any:
        """Return values as the blob, the list or the record that the output was made from."""
        if self._schema is not None:
            return from_blob_list(self._schema, values)
        return values[0] if self._is_scalar else values

    def __repr__(self) -> str:
        return f"TaskOutput(names={self.names}, values={self._values})"


class TaskOutputList:
    """The outputs of a task."""

    def __init__(self, outputs: Iterable[TaskOutput] | None = None) -> None:
        self.outputs = list(outputs or ())

    def names(self) -> list[Any]:
        """Return the names of all blobs."""
        return [name for output in self.outputs for name in output.names]

    def set_values(self, values: Any, _fetch_func: Callable[[Any], Any] | None = None) -> None:
        """Set the blobs of all outputs, in the order of `names`."""
        require(
            len(values) == len(self.names()), "Wrong number of output values.", "TaskOutputList"
        )
        start = 0
        for output in self.outputs:
            end = start + len(output.names)
            output.set(values[start:end], _fetch_func)
            start = end

    def __repr__(self) -> str:
        return f"TaskOutputList(outputs={self.outputs})"


class Task(Managed):
    """A step, its outputs for the client, and how often it runs at once.

    It joins the current group, on the current node. As a context manager it builds its step from
    `ops`.

    step: an argument of ``core.to_execution_step``. outputs: a blob, a record, or a list of these.
    workspace_type: see `WorkspaceType`. num_instances: how many copies run at the same time, each
    in a workspace of its own.

    >>> from bridge.caffe2.net_builder import ops
    >>> from bridge.caffe2.task.session import LocalSession
    >>> from bridge.caffe2.task import Task, final_output
    >>> with Task(name="adds") as task:
    ...     total = final_output(ops.Add([ops.Const(2), ops.Const(3)]))
    >>> with LocalSession() as session:
    ...     session.run(task)
    >>> total.fetch().item()
    5
    """

    TASK_SETUP = "task_setup"
    """The attribute of nets that run once before and after all instances of a task."""
    TASK_INSTANCE_SETUP = "task_instance_setup"
    """The attribute of nets that run before and after each instance."""
    REPORT_STEP = "report_step"
    """The attribute of nets for steps that run every so often while the task runs."""

    def __init__(
        self,
        step: Any = None,
        outputs: Any = None,
        workspace_type: str | None = None,
        group: TaskGroup | None = None,
        node: Any = None,
        name: str | None = None,
        num_instances: int | None = None,
    ) -> None:
        self.node = str(Node.current(None if node is None else Node(node)))
        self.group = TaskGroup.current(group, required=False)
        if not name and isinstance(step, ExecutionStep):
            name = step.Name()
        self.name = self._new_name(name or "task")
        self._already_used = False
        self._step: ExecutionStep | None = None
        self._step_with_setup: ExecutionStep | None = None
        self._outputs: list[TaskOutput] = []
        self._workspace_type = workspace_type
        self._num_instances = num_instances
        self._builder: NetBuilder | None = None
        if self.group is not None:
            self.group._tasks_to_add.append(self)
        if step is not None:
            self.set_step(step)
        if outputs is not None:
            self.add_outputs(outputs)

    def _new_name(self, name: str) -> str:
        base = f"{self.node}/{name}"
        used = {task.name for task in self.group._tasks_to_add} if self.group is not None else ()
        found, i = base, 0
        while found in used:
            i += 1
            found = f"{base}:{i}"
        return found

    def __enter__(self) -> Any:
        super().__enter__()
        self._check_unused()
        require(self._step is None, "This Task already has an execution step.", "Task.__enter__")
        if self.group is not None:  # it comes after the tasks that are made inside it
            self.group._tasks_to_add.remove(self)
        self._builder = NetBuilder(_fullname=self.name)
        self._builder.__enter__()
        return self

    def __exit__(self, etype: Any = None, *error: object) -> None:
        super().__exit__(etype, *error)
        builder, self._builder = self._builder, None
        assert builder is not None
        builder.__exit__(etype, *error)
        if etype is None:
            self.set_step(builder)
        if self.group is not None:
            self.group._tasks_to_add.append(self)

    def workspace_type(self) -> str | None:
        """Return where the task runs; see `WorkspaceType`."""
        return self._workspace_type

    def _check_unused(self) -> None:
        require(not self._already_used, "Cannot modify task since it is already been used.", "Task")

    def add_output(self, output: Any) -> TaskOutput:
        """Add a blob or a record to the outputs; return its TaskOutput."""
        self._check_unused()
        added = output if isinstance(output, TaskOutput) else TaskOutput(output)
        self._outputs.append(added)
        return added

    def add_outputs(self, outputs: Any) -> Any:
        """Add a blob, a record, or each of a list; return its TaskOutput, or a list of them."""
        if type(outputs) not in (list, tuple):
            return self.add_output(outputs)
        return [self.add_output(output) for output in outputs]

    def set_step(self, step: Any) -> None:
        """Set the step, from an argument of ``core.to_execution_step``."""
        self._check_unused()
        self._step = to_execution_step(step)

    def get_step(self) -> ExecutionStep:
        """Return the step with all that runs before, after and beside it; the same each time.

        A task without outputs gets one, an int32.
        """
        if self._step_with_setup is None:
            made = execution_step(self.name, []) if self._step is None else self._made(self._step)
            self._step_with_setup = made
        return self._step_with_setup

    def _made(self, step: ExecutionStep) -> ExecutionStep:
        reports = [
            one
            for one in step.get_all_attributes(Task.REPORT_STEP)
            if not getattr(one, "_report_step_used", False)
        ]
        for one in reports:
            one._report_step_used = True
            if not one.Proto().run_every_ms:
                one.RunEveryMillis(1000)
        task_init, task_exit = get_setup_nets(Task.TASK_SETUP, [step, *reports], self)
        init, exits = get_setup_nets(Task.TASK_INSTANCE_SETUP, [step, *reports], self)
        if not self._outputs:
            output = Net(f"{self.name}:output")
            self.add_output(output.ConstantFill([], 1, dtype=DataType.INT32, value=0))
            task_exit.append(output)
        body = execution_step(f"{self.name}:body", [*reports, step]) if reports else step
        body = add_setup_steps(body, init, exits, f"{self.name}:instance")
        if self._num_instances and self._num_instances > 1:
            body.SetCreateWorkspace(True)
            body = execution_step(
                f"{self.name}:parallel", [body], num_concurrent_instances=self._num_instances
            )
        return add_setup_steps(body, task_init, task_exit, self.name)

    def output_list(self) -> TaskOutputList:
        """Return the outputs as a TaskOutputList."""
        return TaskOutputList(self._outputs)

    def outputs(self) -> list[TaskOutput]:
        """Return the list of outputs, not a copy."""
        return self._outputs

    def _notify_used(self) -> None:
        self.get_step()
        self._already_used = True

    def __repr__(self) -> str:
        return f"Task(name={self.name}, node={self.node}, outputs={self._outputs})"


class TaskGroup(Managed):
    """Tasks that run at the same time: each node's in one workspace, or in children of it.

    workspace_type: see `WorkspaceType`; None is the first task's, PRIVATE by default.

    >>> from bridge.caffe2.net_builder import ops
    >>> from bridge.caffe2.task.session import LocalSession
    >>> from bridge.caffe2.task import Task, TaskGroup, final_output
    >>> with TaskGroup() as group:
    ...     with Task():
    ...         one = final_output(ops.Const(1))
    ...     with Task():
    ...         two = final_output(ops.Const(2))
    >>> LocalSession().run(group)
    >>> one.fetch().item(), two.fetch().item()
    (1, 2)
    """

    LOCAL_SETUP = "local_setup"
    """The attribute of nets that run once on each node before and after all its tasks."""

    def __init__(self, workspace_type: str | None = None) -> None:
        self._tasks: list[Task] = []
        self._tasks_to_add: list[Task] = []
        self._already_used = False
        self._report_nets: dict[str, tuple[Net, float]] = {}
        self._report_steps: list[tuple[str, ExecutionStep]] = []
        self._workspace_type = workspace_type
        self._tasks_by_node: tuple[TaskGroup, dict[str, str]] | None = None
        self._remote_nets: list[Any] = []

    def add_remote_net(self, net: Any) -> None:
        """Add a net to those that `remote_nets` returns."""
        self._remote_nets.append(net)

    def remote_nets(self) -> list[Any]:
        """Return the nets that `add_remote_net` added."""
        return self._remote_nets

    def add(self, task: Task) -> None:
        """Add a task, which cannot be changed then.

        Raises EnforceNotMet, also an AssertionError: `tasks` has been called, or the task runs in
        another type of workspace.
        """
        caller = "TaskGroup.add"
        require(not self._already_used, "Cannot add Task to an already used TaskGroup.", caller)
        mine, its = self._workspace_type, task._workspace_type
        require(
            mine is None or its is None or mine == its,
            f"The tasks of the group run in {mine} workspaces, and this one in a {its} one.",
            caller,
        )
        task._workspace_type = its or mine or WorkspaceType.PRIVATE
        self._workspace_type = mine or task._workspace_type
        task._notify_used()
        self._tasks.append(task)

    def tasks(self) -> list[Task]:
        """Return the tasks. No others can be added then."""
        for task in self._tasks_to_add:
            self.add(task)
        self._tasks_to_add = []
        self._already_used = True
        return self._tasks

    def num_registered_tasks(self) -> int:
        """Return how many tasks there are."""
        return len(self._tasks_to_add) + len(self._tasks)

    def used_nodes(self) -> list[str]:
        """Return the names of the nodes of the tasks, in order."""
        return list(dict.fromkeys(task.node for task in self._tasks + self._tasks_to_add))

    def report_step(self, step: Any = None, node: Any = None, interval_ms: int = 1000) -> None:
        """Add a step that runs every `interval_ms` while a node's tasks run, and once after."""
        made = to_execution_step(step)
        made.RunEveryMillis(interval_ms)
        self._report_steps.append((str(node or Node.current(node)), made))

    def report_net(self, net: Net | None = None, node: Any = None, report_interval: int = 5) -> Net:
        """Return the net that runs every `report_interval` seconds on a node; superseded."""
        name = str(node or Node.current(node))
        there = name in self._report_nets
        require(net is None or not there, f"Node {name!r} has a report net.", "report_net")
        if not there:
            self._report_nets[name] = (net or Net(f"{name}/reporter"), report_interval)
        return self._report_nets[name][0]

    def tasks_by_node(self, node_remap: Callable[[str], str] | None = None) -> TaskGroup:
        """Return a group of one task for each node, which runs all tasks of that node.

        node_remap: returns the node that the tasks of one run on. A setup that runs once cannot be
        distributed again, so a second call with other nodes raises EnforceNotMet, also an
        AssertionError.
        """
        nodes = {
            task.node: node_remap(task.node) if node_remap else task.node for task in self.tasks()
        }
        if self._tasks_by_node is not None:
            grouped, before = self._tasks_by_node
            require(before == nodes, "Cannot call tasks_by_node multiple times.", "tasks_by_node")
            return grouped
        for node, (net, seconds) in self._report_nets.items():
            self.report_step(net, node, int(seconds * 1000))
        self._report_nets = {}
        grouped = TaskGroup()
        for node in dict.fromkeys(nodes.values()):
            tasks = [task for task in self._tasks if nodes[task.node] == node]
            reports = [step for name, step in self._report_steps if nodes[name] == node]
            self._group_one(grouped, node, tasks, reports)
        self._tasks_by_node = grouped, nodes
        return grouped

    def _group_one(
        self, grouped: TaskGroup, node: str, tasks: list[Task], reports: list[ExecutionStep]
    ) -> None:
        """Add to a group the task that runs all tasks of a node."""
        steps = [task.get_step() for task in tasks]
        setup = get_setup_nets(TaskGroup.LOCAL_SETUP, [*steps, *reports], self)
        types = [task.workspace_type() for task in tasks]
        for step, kind in zip(steps, types, strict=True):
            step.SetCreateWorkspace(kind == WorkspaceType.PRIVATE)
        steps = [*reports, *steps] or [execution_step("empty", [])]
        body = steps[0]
        if len(steps) > 1:
            body = execution_step(f"{node}:body", steps, concurrent_substeps=True)
        is_global = WorkspaceType.GLOBAL in types
        Task(
            node=node,
            step=add_setup_steps(body, *setup, node),
            outputs=[output for task in tasks for output in task.outputs()],
            name="grouped_by_node",
            group=grouped,
            workspace_type=WorkspaceType.GLOBAL if is_global else WorkspaceType.PRIVATE,
        )

    def to_task(self, node: Any = None) -> Task:
        """Return a task that runs all tasks on one node."""
        name = str(Node.current(node))
        return next(iter(self.tasks_by_node(lambda _: name).tasks()), None) or Task()

    def workspace_type(self) -> str | None:
        """Return where the tasks run; see `WorkspaceType`."""
        return self._workspace_type

    def __repr__(self) -> str:
        return (
            f"TaskGroup(tasks={self._tasks + self._tasks_to_add}, "
            f"workspace_type={self._workspace_type}, remote_nets={self._remote_nets})"
        )


def final_output(blob_or_record: Any) -> TaskOutput:
    """Add an output to the current task, or to a new one; return it.

    Its value is that after the last task of the node has ended.
    """
    task = Task.current(required=False) or Task()
    output: TaskOutput = task.add_output(blob_or_record)
    return output
