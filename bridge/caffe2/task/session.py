# SPDX-License-Identifier: Apache-2.0
"""Session: runs nets, steps, plans and tasks. Follows caffe2/python/session.py, PyTorch 1.8.1."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.core.plan import Plan
from bridge.caffe2.core.steps import ExecutionStep, execution_step
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.task.builder import require
from bridge.caffe2.task.task_group import Cluster, Task, TaskGroup, WorkspaceType
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.workspace import Workspace, WorkspaceGuard

__all__ = ["CompiledRunnable", "LocalSession", "Session"]


class CompiledRunnable:
    """A plan that a class of sessions runs, made from a net, a step, a plan or tasks."""

    def __init__(self, obj: Any, session_class: type[Session]) -> None:
        self.obj = obj
        self.session_class = session_class


class Session:
    """The base class of sessions, whose `_run_compiled` runs a group of tasks.

    A session is a context manager, and closed at its end.
    """

    def __init__(self) -> None:
        self._open = True

    def is_open(self) -> bool:
        """Return whether `close` has not been called."""
        return self._open

    @classmethod
    def compile(
        cls, runnable: Any, workspace_type: str | None = None, setup_net_list: Any = None
    ) -> CompiledRunnable:
        """Return the plan of this class of sessions for a net, step, plan, task or group of tasks.

        The same one at each call. workspace_type: see `WorkspaceType`; GLOBAL by default, except
        for groups. Raises EnforceNotMet, also an AssertionError: it was compiled for sessions of
        another class, or a group runs in another type of workspace.
        """
        if isinstance(runnable, CompiledRunnable):
            theirs = runnable.session_class
            require(
                theirs is cls,
                f"Runnable was compiled for different session type. Need: {cls.__name__}, got: "
                f"{theirs.__name__}",
                f"{cls.__name__}.compile",
            )
            return runnable
        known: dict[type, CompiledRunnable] = {}
        if hasattr(runnable, "__dict__"):
            known = vars(runnable).setdefault("_compiled", known)
        if cls not in known:
            group = cls._group_of(runnable, workspace_type)
            known[cls] = CompiledRunnable(cls._compile_task_group(group, setup_net_list), cls)
        return known[cls]

    @classmethod
    def _group_of(cls, runnable: Any, workspace_type: str | None) -> TaskGroup:
        if isinstance(runnable, TaskGroup):
            its = runnable.workspace_type()
            require(
                not workspace_type or its in (None, workspace_type),
                f"Require {workspace_type} but already have {its}",
                f"{cls.__name__}.compile",
            )
            runnable._workspace_type = its or workspace_type
            return runnable
        group = TaskGroup(workspace_type or WorkspaceType.GLOBAL)
        if isinstance(runnable, Task):
            group.add(runnable)
            return group
        step = runnable
        if isinstance(runnable, Plan):
            steps = runnable.Steps()
            require(steps, "The plan has no steps.", f"{cls.__name__}.compile")
            step = steps[0] if len(steps) == 1 else steps
        elif not isinstance(runnable, ExecutionStep):
            step = execution_step("runnable", runnable)
        group.add(Task(step=step))
        return group

    def run(
        self, runnable: Any, workspace_type: str | None = None, setup_net_list: Any = None
    ) -> None:
        """Run a net, a step, a plan, a task or a group of tasks; see `compile`.

        Raises EnforceNotMet, also an AssertionError: the session is closed, or `runnable` is None.
        """
        caller = f"{type(self).__name__}.run"
        require(self._open, "Session is closed.", caller)
        require(runnable is not None, "Got a none runnable.", caller)
        self._run_compiled(self.compile(runnable, workspace_type, setup_net_list).obj)

    def close(self) -> None:
        """End the session; a second call does nothing."""
        if self._open:
            self._do_close()
            self._open = False

    def fetch_output(self, output: Any) -> Any:
        """Return the value of an output; for derived classes."""
        raise NotImplementedError

    def _run_compiled(self, task_group: Any) -> None:
        raise NotImplementedError

    @classmethod
    def _compile_task_group(cls, task_group: TaskGroup, setup_net_list: Any = None) -> Any:
        return task_group

    def _do_close(self) -> None:
        pass

    def __enter__(self) -> Any:
        require(self._open, "Session already closed.", f"{type(self).__name__}.__enter__")
        return self

    def __exit__(self, etype: Any = None, *error: object) -> None:
        if etype is None:
            self.close()


class LocalSession(Session):
    """A session in this process: the tasks of all nodes run at the same time.

    ws: the workspace of the outputs, and of tasks of type GLOBAL; by default the current one.
    """

    def __init__(self, ws: Any = None) -> None:
        super().__init__()
        self._ws: Any = current.workspace if ws is None else ws

    @classmethod
    def _compile_task_group(cls, task_group: TaskGroup, setup_net_list: Any = None) -> Any:
        with Cluster():
            task = task_group.to_task()
        plan = Plan("task_group_plan")
        plan.AddStep(task.get_step())
        return plan, task.output_list(), task.workspace_type()

    def _run_compiled(self, task_group: Any) -> None:
        plan, outputs, workspace_type = task_group
        for name in outputs.names():  # of this workspace, not of the tasks' child
            self._ws.create_blob(str(name))
        blobs = [BlobReference(str(name)) for name in outputs.names()]
        outputs.set_values(blobs, _fetch_func=self._fetch_output)
        is_private = workspace_type == WorkspaceType.PRIVATE
        workspace = Workspace(self._ws) if is_private else self._ws
        with WorkspaceGuard(workspace):
            workspace.run(plan)

    def _fetch_output(self, output: Any) -> Any:
        return self._ws.blobs[str(output)].fetch()
