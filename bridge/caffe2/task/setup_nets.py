# SPDX-License-Identifier: Apache-2.0
"""Nets before and after tasks: objects with `setup` and `exit` among the attributes of nets.

Follows caffe2/python/task.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.core.net import Net
from bridge.caffe2.core.steps import ExecutionStep, execution_step


class SetupNets:
    """Nets that run before, and nets that run after, a task or a group of tasks.

    It is added to a net of the task: ``net.add_attribute(Task.TASK_SETUP, SetupNets([init]))``.
    """

    def __init__(self, init_nets: Any = None, exit_nets: Any = None) -> None:
        self.init_nets = init_nets
        self.exit_nets = exit_nets

    def setup(self, init_net: Any) -> Any:
        """Return the nets that run before."""
        return self.init_nets

    def exit(self, exit_net: Any) -> Any:
        """Return the nets that run after."""
        return self.exit_nets

    def __repr__(self) -> str:
        return f"SetupNets(init_nets={self.init_nets}, exit_nets={self.exit_nets})"


def get_setup_nets(
    key: str, steps_or_nets: Iterable[Any], target: Any
) -> tuple[list[Any], list[Any]]:
    """Return the nets that run before, and those that run after, some steps or nets.

    They are the results of the methods `setup` and `exit` of the attributes `key`, and the nets
    that these methods were given, if they added operators. An attribute counts once, and only for
    `target` if it has `_setup_target`.

    Raises EnforceNotMet, also a TypeError: a method returned neither a net nor nets.
    """
    attributes: list[Any] = []
    for one in steps_or_nets:
        get = getattr(one, "get_all_attributes", None) or getattr(one, "get_attributes", None)
        attributes += get(key) if get else []
    nets = {name: Net(f"{key}/{name}") for name in ("init", "exit")}
    found: dict[str, list[Any]] = {"init": [], "exit": []}
    for one in attributes:
        if getattr(one, "_setup_used", False) or getattr(one, "_setup_target", target) != target:
            continue
        for name, method in (("init", "setup"), ("exit", "exit")):
            if hasattr(one, method):
                found[name] += _listed(getattr(one, method)(nets[name]), method)
                one._setup_used = True
    for name, net in nets.items():
        if len(net.Proto().op):
            found[name].insert(0, net)
    return found["init"], found["exit"]


def _listed(nets: Any, method: str) -> list[Any]:
    if nets is None:
        return []
    if isinstance(nets, (list, tuple)):
        return list(nets)
    if not isinstance(nets, (Net, ExecutionStep)):
        raise EnforceTypeError(
            f"Unsupported type for {method}: {type(nets)}; a net, a step or a list of them is "
            "needed.",
            "get_setup_nets",
        )
    return [nets]


def add_setup_steps(
    step: ExecutionStep, init_nets: list[Any], exit_nets: list[Any], name: str
) -> ExecutionStep:
    """Return a step that runs nets before and after a step; that step if there are none."""
    steps = [step]
    if init_nets:
        steps.insert(0, execution_step(f"{name}:init", init_nets))
    if exit_nets:
        steps.append(execution_step(f"{name}:exit", exit_nets))
    return step if len(steps) == 1 else execution_step(name, steps)
