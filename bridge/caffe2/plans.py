# SPDX-License-Identifier: Apache-2.0
"""Running plans: steps of nets and of further steps, so many times or until a blob says stop.

Everything runs in one thread. Substeps that may run concurrently run in turn, the ones that report
every so often once, after the others.

Follows caffe2/core/plan_executor.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from bridge.c10 import bool as bool_type
from bridge.c10.errors import EnforceKeyError, EnforceNotMet, EnforceValueError
from bridge.caffe2.messages import as_message, kind_of
from bridge.caffe2.nets import create_net
from bridge.caffe2.runnable_net import RunnableNet
from bridge.caffe2.workspaces import Workspace, found_blob, state

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

    from bridge.caffe2.blob import Blob

__all__ = ["RunPlan", "plan_of", "run_plan"]


def RunPlan(plan_or_step: Any) -> bool:
    """Run a plan, or a step that has all its nets with it; give True.

    `plan_or_step` is a ``core.Plan``, a ``core.ExecutionStep`` or a PlanDef: a message of any
    class, or its bytes. The plan's nets are created, in place of any of the same names, and stay.

    Raises EnforceNotMet: no PlanDef, a step that contradicts itself or names a net that the plan
    does not have, or an operator failed; what ran before it has had its effect.
    """
    caller = "RunPlan"
    run_plan(state.workspace, plan_of(plan_or_step, caller), caller)
    return True


def plan_of(plan_or_step: Any, caller: str) -> Any:
    """Give the PlanDef of a plan, or of a ``core.ExecutionStep`` and its nets."""
    if hasattr(plan_or_step, "Proto") and kind_of(plan_or_step.Proto()) == "ExecutionStep":
        from bridge.caffe2.plan import Plan

        return Plan(plan_or_step).Proto()
    return as_message(plan_or_step, "PlanDef", caller)


def run_plan(workspace: Workspace, plan: Any, caller: str) -> None:
    """Run a PlanDef in `workspace`."""
    if not plan.execution_step:
        return
    nets: dict[str, Any] = {}
    for net in plan.network:
        if net.name in nets:
            raise EnforceValueError(f"The plan has two nets of the name {net.name!r}.", "", caller)
        nets[net.name] = net
    run = _Run(nets, caller)
    for step in plan.execution_step:
        run.step(step, workspace)


class _Run:
    """One run of a plan: the nets that it has, and the ones that were made of them."""

    def __init__(self, nets: dict[str, Any], caller: str) -> None:
        self.nets = nets
        self.caller = caller
        self.made: dict[tuple[int, str], RunnableNet] = {}
        self.workspaces: list[Workspace] = []  # kept, so that no two have one id

    def net(self, step: Any, name: str, workspace: Workspace) -> RunnableNet:
        """Give the net of that name, made in `workspace` when it is first needed."""
        found = self.made.get((id(workspace), name))
        if found is None:
            message = self.nets.get(name)
            if message is None:
                raise EnforceKeyError(
                    f"Step {step.name!r} uses net {name!r}, which the plan does not have.",
                    "",
                    self.caller,
                )
            found = create_net(workspace, message, True, self.caller)
            self.made[id(workspace), name] = found
        return found

    def step(self, step: Any, outer: Workspace) -> None:
        """Run a step and all within."""
        workspace = outer
        if step.create_workspace:
            workspace = Workspace()
            workspace._parent = outer
            workspace._root_folder = outer._root_folder
            self.workspaces.append(workspace)
        stop = self._stop_blob(step, workspace)
        if step.network and step.substep:
            raise EnforceValueError(
                f"Step {step.name!r} has nets and substeps; it can have one of them.",
                "",
                self.caller,
            )
        nets = [self.net(step, name, workspace) for name in step.network]
        substeps = self._in_turn(step)
        for _ in self._iterations(step):
            for substep in substeps:
                self.step(substep, workspace)
                if stop is not None and self._says_stop(step, stop):
                    return
            for net in nets:
                net._run(self.caller)
                if stop is not None and self._says_stop(step, stop):
                    return

    def _in_turn(self, step: Any) -> list[Any]:
        """List the substeps in the order in which they run."""
        if not step.concurrent_substeps:
            return list(step.substep)
        copies = max(step.num_concurrent_instances, 1)
        working = [one for one in step.substep if not one.HasField("run_every_ms")]
        reporting = [one for one in step.substep if one.HasField("run_every_ms")]
        return [one for one in working for _ in range(copies)] + reporting

    def _iterations(self, step: Any) -> Iterable[int]:
        """Give as many as the step runs, unless it is stopped before."""
        if step.HasField("should_stop_blob"):
            return range(1) if step.only_once else itertools.count()
        if step.HasField("only_once"):
            raise EnforceValueError(
                f"Step {step.name!r} says only_once, which goes with should_stop_blob alone.",
                "!step.has_only_once()",
                self.caller,
            )
        return range(step.num_iter if step.HasField("num_iter") else 1)

    def _stop_blob(self, step: Any, workspace: Workspace) -> Blob | None:
        if not step.HasField("should_stop_blob"):
            return None
        if step.HasField("num_iter"):
            raise EnforceValueError(
                f"Step {step.name!r} has should_stop_blob and num_iter; it can have one of them.",
                "!step.has_num_iter()",
                self.caller,
            )
        blob = found_blob(workspace, step.should_stop_blob)
        if blob is None:
            raise EnforceKeyError(
                f"There is no blob {step.should_stop_blob!r}, which step {step.name!r} has as "
                "should_stop_blob.",
                "",
                self.caller,
            )
        return blob

    def _says_stop(self, step: Any, blob: Blob) -> bool:
        tensor = blob._tensor
        if tensor is None or not tensor.IsType(bool_type) or tensor.numel() != 1:
            raise EnforceNotMet(
                f"{blob._called(step.should_stop_blob)}; should_stop_blob is one bool.",
                "IsType(bool) && numel() == 1",
                self.caller,
            )
        return bool(tensor.numpy().reshape(-1)[0])
