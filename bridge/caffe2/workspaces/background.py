# SPDX-License-Identifier: Apache-2.0
"""RunPlanInBackground: a plan that runs in a thread of its own.

>>> import time
>>> from bridge.caffe2 import core, workspace
>>> net = core.Net("fill")
>>> _ = net.ConstantFill([], "x", shape=[2], value=1.0)
>>> running = workspace.RunPlanInBackground(core.execution_step("step", net))
>>> while not running.is_done():
...     time.sleep(0.001)
>>> running.is_succeeded(), workspace.FetchBlob("x").tolist()
(True, [1.0, 1.0])
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

import functools
import threading

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.plan_runs import plan_of, run_plan
from bridge.exchange.streams import on_current_streams


class BackgroundPlan:
    """A plan that runs in the background, started by `RunPlanInBackground`."""

    def __init__(self, workspace: BlobTable, plan: Any) -> None:
        self._error: EnforceNotMet | None = None
        work = on_current_streams(functools.partial(self._run, workspace, plan))
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def _run(self, workspace: BlobTable, plan: Any) -> None:
        caller = "RunPlanInBackground"
        try:
            run_plan(workspace, plan, caller)
        except EnforceNotMet as error:
            self._error = error
        except BaseException as cause:  # noqa: BLE001 - SystemExit, too
            self._error = EnforceNotMet(f"The plan was ended by {cause!r}.", caller)
            self._error.__cause__ = cause

    def is_done(self) -> bool:
        """Return whether it has ended, successfully or not."""
        return not self._thread.is_alive()

    def is_succeeded(self) -> bool:
        """Return True if it has ended successfully.

        Raises EnforceNotMet: it is still running, or the error that ended it.
        """
        if not self.is_done():
            raise EnforceNotMet(
                "The plan is still running; wait until is_done().",
                "BackgroundPlan.is_succeeded",
                condition="is_done()",
            )
        if self._error is not None:
            raise self._error
        return True


def RunPlanInBackground(plan_or_step: Any) -> BackgroundPlan:
    """Start a thread that runs a plan in the current workspace, as `RunPlan` does; return at once.

    Raises EnforceNotMet: not a PlanDef. ``is_succeeded()`` raises the errors of the run itself.
    """
    return BackgroundPlan(current.workspace, plan_of(plan_or_step, "RunPlanInBackground"))
