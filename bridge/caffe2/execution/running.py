# SPDX-License-Identifier: Apache-2.0
"""Running operators, other than `RunOperatorOnce`."""

from __future__ import annotations

import operator as _operator
from collections.abc import Iterable

from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.base.messages import as_message, kind_of, message_in
from bridge.caffe2.execution.definition import Definition, definition_of
from bridge.caffe2.execution.operator import failure
from bridge.caffe2.execution.registry import class_for
from bridge.caffe2.workspaces.workspace import Workspace, found_blob, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RunOperatorMultiple", "RunOperatorsOnce", "count_of", "run_any", "run_operator"]


def RunOperatorMultiple(operator: Any, num_runs: int) -> bool:
    """Make the operator once and run it `num_runs` times; return True.

    Its state is kept from run to run. Raises EnforceNotMet as `RunOperatorOnce`; the runs before
    the one that failed have had their effect.
    """
    caller = "RunOperatorMultiple"
    definition = definition_of(operator, caller)
    return run_operator(state.workspace, definition, count_of(num_runs, "num_runs", caller), caller)


def count_of(value: Any, name: str, caller: str) -> int:
    """Return a number of runs as an int. Raises EnforceNotMet, also a TypeError: it is none."""
    try:
        return _operator.index(value)
    except TypeError as cause:
        raise EnforceTypeError(f"{name} is an int, not {type(value).__name__}.", caller) from cause


def RunOperatorsOnce(operators: Iterable[Any]) -> bool:
    """Run each of the operators once, in turn; return True.

    Raises EnforceNotMet as `RunOperatorOnce`; the operators before the one that failed have run.
    """
    caller = "RunOperatorsOnce"
    try:
        every = list(operators)
    except TypeError as cause:
        raise wrap_error("RunOperatorsOnce takes a sequence of operators", caller, cause) from cause
    for operator in every:
        run_operator(state.workspace, definition_of(operator, caller), 1, caller)
    return True


def run_operator(workspace: Workspace, definition: Definition, times: int, caller: str) -> bool:
    """Make an operator in `workspace` and run it so many times; return True."""
    new = [name for name in definition.outputs if found_blob(workspace, name) is None]
    done = 0
    try:
        operator = class_for(definition, caller)(definition, workspace)
        while done < times:
            operator._run()
            done += 1
    except BaseException as cause:
        if not done:
            for name in new:
                workspace._blobs.pop(name, None)
        if isinstance(cause, Exception):
            raise failure(definition, cause, caller) from cause
        raise
    return True


def run_any(workspace: Workspace, obj: Any) -> None:
    """Run an operator, a net or a plan in `workspace`, by the kind of message that it is."""
    from bridge.caffe2.execution.nets import run_net_once
    from bridge.caffe2.execution.plans import plan_of, run_plan

    caller = "Workspace.run"
    message = message_in(obj)
    kind = kind_of(message)
    if kind == "OperatorDef":
        run_operator(workspace, definition_of(message, caller), 1, caller)
    elif kind == "NetDef":
        run_net_once(workspace, as_message(message, kind, caller), caller)
    elif kind in ("PlanDef", "ExecutionStep"):
        run_plan(workspace, plan_of(obj, caller), caller)
    else:
        raise EnforceValueError(
            f"Workspace.run runs an operator, a net or a plan, and {type(obj).__name__} does not "
            "say which it is.",
            caller,
        )
