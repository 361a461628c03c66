# SPDX-License-Identifier: Apache-2.0
"""Plan: execution steps, and the nets that they run.

Follows Plan, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.base.messages import as_message, caffe2_pb2, set_fields
from bridge.caffe2.core.net import Net
from bridge.caffe2.core.steps import ExecutionStep, add_net, add_nets_in_order


class Plan:
    """A plan under construction: steps that run in order, and copies of the nets that they run.

    name_or_step: a name, or a first step, whose name the plan takes. ``workspace.RunPlan`` runs it.

    Raises EnforceNotMet, also a ValueError: `name_or_step` is neither.

    >>> from bridge.caffe2 import core
    >>> plan = core.Plan("train")
    >>> plan.AddStep(core.execution_step("epoch", core.Net("batch"), num_iter=3))
    >>> [net.Name() for net in plan.Nets()]
    ['batch']
    """

    def __init__(self, name_or_step: Any) -> None:
        self._plan: Any = caffe2_pb2().PlanDef()
        self._net_dict: dict[Any, Net | None] = {}
        self._steps: list[ExecutionStep] = []
        if isinstance(name_or_step, ExecutionStep):
            self._plan.name = name_or_step.Name()
            self.AddStep(name_or_step)
        elif isinstance(name_or_step, str):
            set_fields(self._plan, "core.Plan", name=name_or_step)
        else:
            raise EnforceValueError("name_or_step must be a string or ExecutionStep", "core.Plan")

    def __str__(self) -> str:
        return str(self._plan.name)

    def Proto(self) -> Any:
        """Return the PlanDef of the plan, not a copy; it may be changed."""
        return self._plan

    def AddNets(self, nets: Iterable[Any]) -> None:
        """Add copies of nets; those that the plan has already are left out.

        Raises EnforceNotMet, also an AssertionError, and adds nothing: one is not a Net, or the
        plan has another net of that name.
        """
        known, new = dict(self._net_dict), []
        for net in nets:
            if not isinstance(net, Net):
                raise EnforceAssertionError(
                    f"A Net is expected, not {type(net).__name__}.", "Plan.AddNets"
                )
            if add_net(known, net):
                new.append(net)
        self._net_dict = known
        for net in new:
            self._plan.network.add().CopyFrom(net.Proto())

    def Nets(self) -> list[Any]:
        """Return the nets of the plan, a new list."""
        return list(self._net_dict.values())

    def AddStep(self, step: ExecutionStep) -> None:
        """Add copies of a step and of the nets that it runs; an empty step is left out.

        The step cannot be changed afterwards. Raises EnforceNotMet, also an AssertionError: `step`
        is not an ExecutionStep, refers to a net by name only, or runs a net whose name another net
        of the plan has.
        """
        if not isinstance(step, ExecutionStep):
            raise EnforceAssertionError(
                f"An ExecutionStep is expected, not {type(step).__name__}.", "Plan.AddStep"
            )
        if step.HasNets() or step.HasSubsteps():
            names: list[str] = []
            add_nets_in_order(step, names)
            self.AddNets([step.get_net(name) for name in names])
            self._plan.execution_step.add().CopyFrom(step.Proto())
            self._steps.append(step)
        step._notify_is_used()

    def Steps(self) -> list[ExecutionStep]:
        """Return the list of steps, not a copy."""
        return self._steps

    def get_all_attributes(self, name: str) -> list[Any]:
        """Return the attributes `name` of all nets; see ``Net.add_attribute``."""
        return [one for net in self.Nets() if net is not None for one in net.get_attributes(name)]

    @classmethod
    def create_from_proto(cls, plan_proto: Any) -> Plan:
        """Return a Plan constructed from a PlanDef.

        Nets whose names are used in this process get new ones. Raises EnforceNotMet: not a PlanDef
        (also a TypeError), two nets have one name or a net is missing (also an AssertionError).
        """
        message = as_message(plan_proto, "PlanDef", "Plan.create_from_proto")
        plan = cls(message.name)
        plan._plan.CopyFrom(message)
        del plan._plan.network[:]
        del plan._plan.execution_step[:]
        protos: dict[str, Any] = {}
        for net in message.network:
            if net.name in protos:
                raise EnforceAssertionError(
                    f"The plan has two nets named {net.name!r}.",
                    "Plan.create_from_proto",
                )
            protos[net.name] = net
        nets: dict[str, Net] = {}
        for step in message.execution_step:
            plan.AddStep(ExecutionStep.create_from_proto(step, nets, protos))
        return plan
