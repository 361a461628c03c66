# SPDX-License-Identifier: Apache-2.0
"""Nets and steps as text; what they are held against was printed by the real Caffe2."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, net_printer
from tests.conformance.models.printed import printed

THEIRS = Path(__file__).parents[1] / "conformance" / "models" / "printed.txt"


def test_the_text_equals_the_text_of_caffe2() -> None:
    assert printed(core, net_printer).split("\n--\n") == THEIRS.read_text().split("\n--\n")


class Task:
    """As the class of this name in the old PyTorch's module `task`."""

    def __init__(self, node: str, step: Any, kind: str) -> None:
        self.node, self.name, self.kind = node, f"{node}_task", kind
        self.step = step

    def get_step(self) -> Any:
        return self.step

    def workspace_type(self) -> str:
        return self.kind

    def outputs(self) -> list[Any]:
        return [SimpleNamespace(names=["y", "z"])]


class TaskGroup:
    def __init__(self, *tasks: Task) -> None:
        self.all = tasks

    def tasks_by_node(self) -> TaskGroup:
        return self

    def tasks(self) -> tuple[Task, ...]:
        return self.all


class Job:
    def __init__(self, init: TaskGroup, epoch: TaskGroup) -> None:
        self.init_group, self.epoch_group = init, epoch
        self.download_group = self.exit_group = TaskGroup()
        self.stop_conditions = [SimpleNamespace(names=["done"])]


def job(kind: str) -> Job:
    init, use = core.Net("init"), core.Net("use")
    init.ConstantFill([], "x", shape=[1])
    use.Relu("x", "y")
    first = Task("node", core.execution_step("init_step", init), kind)
    second = Task("node", core.execution_step("use_step", use), "global")
    return Job(TaskGroup(first), TaskGroup(second))


def test_a_job_is_printed_by_its_groups() -> None:
    text = net_printer.to_string(job("global"), c2_syntax=False)
    # (nets of the same name made before give these a number)
    text = re.sub(r"(# net: [a-z]+)_\d+", r"\1", text)
    assert text.splitlines() == [
        "with Job.current().init_group:",
        "    with Task(node=node, name=node_task, outputs=Output[y, z]):",
        "        # net: init",
        "        x = ConstantFill(shape=[1])",
        "with Job.current().epoch_group:",
        "    with Task(node=node, name=node_task, outputs=Output[y, z]):",
        "        # net: use",
        "        y = Relu(x)",
        "with Job.current().stop_conditions:",
        "    Output[done]",
        "with Job.current().download_group:",
        "    pass",
        "with Job.current().exit_group:",
        "    pass",
    ]
    net_printer.analyze(job("global"))
    with pytest.raises(AssertionError, match=r"^Blob undefined: x$"):
        net_printer.analyze(job("private"))


def test_other_objects_are_refused() -> None:
    with pytest.raises(EnforceNotMet, match="Printer: unsupported object type") as error:
        net_printer.to_string(3)
    assert isinstance(error.value, TypeError)
    assert net_printer.to_string(None) == ""
    with pytest.raises(EnforceNotMet, match="already registered"):
        net_printer.Printer.register(core.Net)
    with pytest.raises(EnforceNotMet, match="Expected a Net"):
        net_printer.debug_net("n")


def test_operators_are_printed_before_they_run() -> None:
    net = core.Net("logged")
    net.Relu("x", "y")
    debugged = net_printer.debug_net(net).Proto().op
    assert [op.type for op in debugged] == ["GivenTensorStringFill", "Print", "Relu"]
    assert b"y = Relu(x)" in debugged[0].SerializeToString()
