# SPDX-License-Identifier: Apache-2.0
"""RunPlanInBackground: a plan that runs in a thread of its own."""

from __future__ import annotations

import threading

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.plans import plan_of, run_plan
from bridge.caffe2.workspaces.workspace import Workspace, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BackgroundPlan", "RunPlanInBackground"]


class BackgroundPlan:
    """A plan that runs in the background; `RunPlanInBackground` makes it."""

    def __init__(self, workspace: Workspace, plan: Any) -> None:
        self._error: EnforceNotMet | None = None
        self._thread = threading.Thread(target=self._run, args=(workspace, plan), daemon=True)
        self._thread.start()

    def _run(self, workspace: Workspace, plan: Any) -> None:
        caller = "RunPlanInBackground"
        try:
            run_plan(workspace, plan, caller)
        except EnforceNotMet as error:
            self._error = error
        except BaseException as cause:  # noqa: BLE001 - as SystemExit: it did not end well either
            self._error = EnforceNotMet(f"The plan was ended by {cause!r}.", caller)
            self._error.__cause__ = cause

    def is_done(self) -> bool:
        """Return whether it has ended, in whatever way."""
        return not self._thread.is_alive()

    def is_succeeded(self) -> bool:
        """Return True where it has ended well.

        Raises EnforceNotMet: it still runs, or what ended it.
        """
        if not self.is_done():
            raise EnforceNotMet(
                "The plan still runs; wait until is_done().",
                "BackgroundPlan.is_succeeded",
                condition="is_done()",
            )
        if self._error is not None:
            raise self._error
        return True


def RunPlanInBackground(plan_or_step: Any) -> BackgroundPlan:
    """Start to run a plan in the current workspace, as `RunPlan` does, and return it at once.

    Raises EnforceNotMet: no PlanDef. What fails later is raised by ``is_succeeded()``.
    """
    return BackgroundPlan(state.workspace, plan_of(plan_or_step, "RunPlanInBackground"))
