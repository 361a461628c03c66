# SPDX-License-Identifier: Apache-2.0
"""RunPlan: a plan in the current workspace."""

from __future__ import annotations

from bridge.caffe2.execution.plans import plan_of, run_plan
from bridge.caffe2.workspaces.current import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def RunPlan(plan_or_step: Any) -> bool:
    """Run a plan, or a step with its nets, in the current workspace; return True.

    plan_or_step: a ``core.Plan``, a ``core.ExecutionStep`` or a PlanDef, as a message of any class
    or as bytes. The plan's nets are created, replacing nets of the same names, and stay.

    Raises EnforceNotMet: not a PlanDef, a step that contradicts itself or names a net that the plan
    does not have, or an operator failed; the operators before it have had their effect.

    >>> import numpy as np
    >>> from bridge.caffe2 import core, workspace
    >>> workspace.FeedBlob("x", np.array([1.0], np.float32))
    True
    >>> net = core.Net("doubled_by_a_plan")
    >>> _ = net.Scale("x", "x", scale=2.0)
    >>> plan = core.Plan("three times")
    >>> plan.AddStep(core.execution_step("step", net, num_iter=3))
    >>> workspace.RunPlan(plan), workspace.FetchBlob("x"), workspace.Nets()
    (True, array([8.], dtype=float32), ['doubled_by_a_plan'])
    >>> workspace.ResetWorkspace()
    True
    """
    caller = "RunPlan"
    run_plan(current.workspace, plan_of(plan_or_step, caller), caller)
    return True
