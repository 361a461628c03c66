# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.net_builder``: nets, loops and conditions by `with` blocks.

Follows caffe2/python/net_builder.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2 import core
from bridge.caffe2.core.control_ops_util import add_if_op, add_while_op
from bridge.caffe2.core.net import Net
from bridge.caffe2.core.steps import ExecutionStep, to_execution_step
from bridge.caffe2.modeling import context
from bridge.caffe2.task.builder import (
    ElseNet,
    IfBlock,
    IfNet,
    Loop,
    NetBuilder,
    StopGuard,
    WhileCondition,
    WhileNet,
)
from bridge.caffe2.task.task_group import Task, TaskGroup

__all__ = [
    "NetBuilder",
    "Operations",
    "Task",
    "TaskGroup",
    "add_if_op",
    "add_while_op",
    "context",
    "core",
    "ops",
]


class _Setup(NetBuilder):
    """A block that runs before or after a task; an attribute of nets for `get_setup_nets`."""

    def __init__(self, is_init: bool, name: str | None = None) -> None:
        super().__init__(name)
        self._is_init = is_init

    def setup(self, net: Net) -> ExecutionStep | None:
        """Return the step that runs before."""
        return to_execution_step(self) if self._is_init else None

    def exit(self, net: Net) -> ExecutionStep | None:
        """Return the step that runs after."""
        return None if self._is_init else to_execution_step(self)


class _Reporter(NetBuilder):
    """A block that runs every so often while a task, or all tasks of a node, run."""

    def __init__(self, interval_ms: int, net: Net | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self._net = net
        self._interval_ms = interval_ms

    def _end(self) -> None:
        if self._net is None:
            TaskGroup.current().report_step(self, interval_ms=self._interval_ms)
        else:
            step = to_execution_step(self)
            step.RunEveryMillis(self._interval_ms)
            self._net.add_attribute(Task.REPORT_STEP, step)


class Operations:
    """Adds operators, by their types, and blocks to the current NetBuilder.

    `If`, `loop`, `stop_guard` and their kin are steps, ended by a bool blob; `IfNet` and `WhileNet`
    are operators.

    >>> from bridge.caffe2 import core, workspace
    >>> from bridge.caffe2.net_builder import NetBuilder, ops
    >>> with NetBuilder() as builder:
    ...     x, y = ops.Const(5), ops.Const(0)
    ...     with ops.loop():
    ...         ops.stop_if(ops.LE([x, ops.Const(0)]))
    ...         x = ops.Add([x, ops.Const(-1)], [x])
    ...         with ops.If(ops.GE([x, ops.Const(3)])) as chain:
    ...             y = ops.Add([y, ops.Const(10)], [y])
    ...         with chain.Else():
    ...             y = ops.Add([y, ops.Const(1)], [y])
    >>> plan = core.Plan("blocks")
    >>> plan.AddStep(core.to_execution_step(builder))
    >>> workspace.RunPlan(plan), workspace.FetchBlob(y).item(), workspace.ResetWorkspace()
    (True, 23, True)
    """

    def __getattr__(self, op_type: str) -> Any:
        if op_type.startswith("__") or NetBuilder.current(required=False) is None:
            raise AttributeError(f"No active NetBuilder, to which {op_type!r} could be added.")
        return getattr(self.net(), op_type)

    def net(self, net: Net | None = None, name: str | None = None) -> Net:
        """Return the current net; a new one if `name` is given; `net` itself, which is added."""
        builder = NetBuilder.current()
        found: Net = builder.current_net(name) if net is None else builder.add(net)
        return found

    def stop(self) -> None:
        """End the current block here."""
        self.stop_if(self.net().Const(True))

    def stop_if(self, blob: Any) -> None:
        """End the current block here if the blob is True."""
        NetBuilder.current().stop_if(blob)

    def loop(self, iters: Any = None, name: str | None = None) -> Any:
        """Add a block that runs `iters` times, a number or a blob; None: until it stops."""
        return NetBuilder.current().add(Loop(iters, name))

    def stop_guard(self, has_stopped_blob: Any = None, name: str | None = None) -> Any:
        """Add a block that runs once; its `has_stopped()` is a blob that says whether it ended."""
        return NetBuilder.current().add(StopGuard(has_stopped_blob, name))

    def If(self, cond: Any, name: str | None = None) -> Any:
        """Add a block that runs if the blob is True; its methods `Elif` and `Else` add others."""
        return NetBuilder.current().add(IfBlock(cond, name))

    def IfNet(self, cond: Any, name: str | None = None) -> Any:
        """Add a block that the operator If runs if the blob is True."""
        return NetBuilder.current().add(IfNet(cond, name))

    def Else(self, name: str | None = None) -> Any:
        """Return the block that the `IfNet` just before runs otherwise."""
        return ElseNet(name)

    def WhileNet(self, name: str | None = None) -> Any:
        """Add a block that the operator While repeats; it begins with a block `Condition`."""
        return NetBuilder.current().add(WhileNet(name))

    def Condition(self, name: str | None = None) -> Any:
        """Return the block that computes the condition of the current `WhileNet`."""
        return WhileCondition(name)

    def task_group(self) -> TaskGroup:
        """Add a group of tasks, which all run on the current node, as the next step."""
        group = TaskGroup()
        NetBuilder.current().add(group)
        return group

    def task_init(self) -> Any:
        """Return a block that runs once before the task, whatever its number of instances."""
        return self._attribute(Task.TASK_SETUP, _Setup(True))

    def task_exit(self) -> Any:
        """Return a block that runs once after the task."""
        return self._attribute(Task.TASK_SETUP, _Setup(False))

    def task_instance_init(self) -> Any:
        """Return a block that runs before each instance of the task."""
        return self._attribute(Task.TASK_INSTANCE_SETUP, _Setup(True))

    def task_instance_exit(self) -> Any:
        """Return a block that runs after each instance of the task."""
        return self._attribute(Task.TASK_INSTANCE_SETUP, _Setup(False))

    def local_init(self) -> Any:
        """Return a block that runs once on the node, before any task of the group."""
        return self._attribute(TaskGroup.LOCAL_SETUP, _Setup(True))

    def local_exit(self, name: str | None = None) -> Any:
        """Return a block that runs once on the node, after all tasks of the group."""
        return self._attribute(TaskGroup.LOCAL_SETUP, _Setup(False, name))

    def task_reporter(self, interval_ms: int = 1000, name: str | None = None) -> Any:
        """Return a block that runs every `interval_ms` while the task runs, and once after it."""
        return _Reporter(interval_ms, self.net(), name)

    def local_reporter(self, interval_ms: int = 1000, name: str | None = None) -> Any:
        """Return a block that runs every `interval_ms` while tasks of the group run."""
        return _Reporter(interval_ms, name=name)

    def _attribute(self, key: str, block: _Setup) -> _Setup:
        self.net().add_attribute(key, block)
        return block


ops = Operations()
