# SPDX-License-Identifier: Apache-2.0
"""RunPlan and RunPlanInBackground: steps that run nets, or further steps, repeatedly.

Substeps and instances run concurrently, each in a thread, if the step says so
(``concurrent_substeps``, or several ``num_concurrent_instances``), else one after the other; if one
of them fails, the others are cancelled. Substeps and nets that report at intervals run once, after
the others.

Follows caffe2/core/plan_executor.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10 import bool as bool_type
from bridge.c10.errors import EnforceKeyError, EnforceNotMet, EnforceValueError
from bridge.caffe2.base.messages import copied, kind_of, message_in
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.blob_table import BlobTable, find_blob
from bridge.caffe2.execution.parallel import run_tasks
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.named_nets import create_net
from bridge.exchange.streams import on_current_streams

# Threads of one step; more instances take turns. As many that wait need 65 MiB, and 0.8 seconds of
# a processor to start.
_MOST_THREADS = 4096


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


def plan_of(plan_or_step: Any, caller: str) -> Any:
    """Return the PlanDef of a plan, or of a ``core.ExecutionStep`` and its nets, as a copy.

    Raises EnforceNotMet, also a TypeError or ValueError: it is neither.
    """
    if kind_of(message_in(plan_or_step)) == "ExecutionStep" and hasattr(plan_or_step, "Proto"):
        from bridge.caffe2.core.plan import Plan  # already loaded if there is a step

        return Plan(plan_or_step).Proto()
    return copied(plan_or_step, "PlanDef", caller)


def run_plan(table: BlobTable, plan: Any, caller: str) -> None:
    """Run a PlanDef on the blobs of `table`.

    Raises EnforceNotMet: a step contradicts itself or names a net that the plan does not have (also
    a KeyError), or an operator failed; the operators before it have run.
    """
    if not plan.execution_step:
        return
    nets: dict[str, Any] = {}
    for net in plan.network:
        if net.name in nets:
            raise EnforceValueError(f"The plan has two nets named {net.name!r}.", caller)
        nets[net.name] = net
    # As a list: the end of a repeated field takes memory, and the last step has then been run.
    for step in [*plan.execution_step]:
        _Step(step, table, nets, {}, caller).run()


class _Step:
    """A step that is ready to run: its nets and substeps exist, its blob has been found.

    A substep with a workspace of its own is created anew for each run.
    """

    def __init__(
        self,
        message: Any,
        outer: BlobTable,
        nets: dict[str, Any],
        created: dict[str, RunnableNet],
        caller: str,
    ) -> None:
        self.message = message
        self.caller = caller
        self.all_nets = nets
        self.created = created
        self.table = outer
        if message.create_workspace:
            self.table = outer._child()
            self.created = {}
        if message.network and message.substep:
            raise self._contradiction("has nets and substeps; it can have only one of them")
        self.nets = [self._net(name) for name in message.network]
        self.report = self._report()
        self.substeps: list[Any] = []
        self.reports: list[Any] = []
        for step in message.substep:
            ready = step if step.create_workspace else self._ready(step)
            (self.reports if step.HasField("run_every_ms") else self.substeps).append(ready)
        self.instances = max(message.num_concurrent_instances, 1)
        threads = self.instances * len(self.substeps)
        several = message.concurrent_substeps or self.instances > 1
        self.is_concurrent = several and 0 < threads <= _MOST_THREADS
        self.iterations = self._iterations()
        self.stop = self._stop_blob()
        # The substeps that run now; all are cancelled if one of several threads fails.
        self.running: list[_Step] = []
        self.cancelled = False

    def _contradiction(self, what: str) -> EnforceValueError:
        return EnforceValueError(f"Step {self.message.name!r} {what}.", self.caller)

    def _net(self, name: str) -> RunnableNet:
        """Return the net of that name; the first call creates it."""
        if name not in self.created:
            if name not in self.all_nets:
                raise EnforceKeyError(
                    f"Step {self.message.name!r} uses net {name!r}, which the plan does not have.",
                    self.caller,
                )
            self.created[name] = create_net(self.table, self.all_nets[name], True, self.caller)
        return self.created[name]

    def _report(self) -> RunnableNet | None:
        """Return the net that reports, if there is one."""
        if not self.message.HasField("report_net"):
            return None
        if not self.message.HasField("report_interval"):
            raise self._contradiction("has report_net, which needs report_interval")
        return self._net(self.message.report_net)

    def _ready(self, step: Any) -> _Step:
        return _Step(step, self.table, self.all_nets, self.created, self.caller)

    def _iterations(self) -> Iterable[int] | None:
        """Return a range of the iterations; None: no limit but should_stop_blob."""
        message = self.message
        if message.HasField("should_stop_blob"):
            if message.HasField("num_iter"):
                raise self._contradiction(
                    "has should_stop_blob and num_iter; it can have only one of them"
                )
            return range(1) if message.only_once else None
        if message.HasField("only_once"):
            raise self._contradiction("has only_once, which requires should_stop_blob")
        return range(message.num_iter if message.HasField("num_iter") else 1)

    def _stop_blob(self) -> Blob | None:
        if not self.message.HasField("should_stop_blob"):
            return None
        name = self.message.should_stop_blob
        blob = find_blob(self.table, name)
        if blob is None:
            raise EnforceKeyError(
                f"There is no blob {name!r}, the should_stop_blob of step {self.message.name!r}.",
                self.caller,
            )
        return blob

    def run(self) -> None:
        """Run the nets and substeps until the iterations or the stop blob end it; then report."""
        reports = iter(self.reports)  # before the run, as it takes memory
        self._run_all()
        for substep in reports:
            self._run_substep(substep)
        if self.report is not None:
            self.report._run(self.caller)

    def _run_all(self) -> None:
        if not self.substeps and not self.nets:
            return  # an endless loop otherwise
        for _ in itertools.count() if self.iterations is None else self.iterations:
            if self.cancelled:
                return
            if self.is_concurrent:
                self._run_concurrently()
                if self._should_stop():
                    return
                continue
            for _ in range(self.instances if self.substeps else 0):
                for substep in self.substeps:
                    self._run_substep(substep)
                    if self._should_stop():
                        return
            for net in self.nets:
                net._run(self.caller)
                if self._should_stop():
                    return

    def _run_concurrently(self) -> None:
        """Run all substeps of all instances, each in a thread.

        An instance after the first has steps of its own, since a step is not run twice at once.
        """
        tasks = []
        for instance in range(self.instances):
            for substep, message in zip(self.substeps, self._plain_substeps(), strict=True):
                ready = substep if not instance or substep is message else self._ready(message)
                tasks.append(functools.partial(self._run_substep, ready))
        run_tasks(tasks, self.cancel)

    def _plain_substeps(self) -> list[Any]:
        return [step for step in self.message.substep if not step.HasField("run_every_ms")]

    def _run_substep(self, substep: Any) -> None:
        step = substep if isinstance(substep, _Step) else self._ready(substep)
        self.running.append(step)
        try:
            if not self.cancelled:
                step.run()
        finally:
            self.running.remove(step)

    def cancel(self) -> None:
        """End the run in other threads: nets that wait, as for a queue, fail; no others begin."""
        self.cancelled = True
        for step in [*self.running]:
            step.cancel()
        for net in self.nets:
            net.cancel()

    def _should_stop(self) -> bool:
        blob = self.stop
        if blob is None:
            return False
        tensor = blob._tensor
        if tensor is None or not tensor.IsType(bool_type) or tensor.numel() != 1:
            raise EnforceNotMet(
                f"{blob._describe(self.message.should_stop_blob)}; should_stop_blob is one bool.",
                self.caller,
                condition="IsType(bool) && numel() == 1",
            )
        return bool(tensor.numpy().reshape(-1)[0])


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
    return BackgroundPlan(current.workspace, plan_of(plan_or_step, "RunPlanInBackground"))
