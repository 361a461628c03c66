# SPDX-License-Identifier: Apache-2.0
"""Running single operators."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.operator import failure
from bridge.caffe2.operator_def import Definition, definition_of
from bridge.caffe2.refusal import refusal
from bridge.caffe2.registry import class_for
from bridge.caffe2.workspaces import Workspace, found_blob, state

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RunOperatorMultiple", "RunOperatorOnce", "RunOperatorsOnce", "run_operator"]


def RunOperatorOnce(operator: Any) -> bool:
    """Make the operator and run it once, in the current workspace; give True.

    `operator` is an OperatorDef: a message of any class with ``SerializeToString``, or its bytes.

    Raises EnforceNotMet, from the error that was met: no OperatorDef, no such operator, no such
    input, or it failed; the error names the operator, its inputs and outputs. Outputs are then what
    they were, and those that did not exist do not.
    """
    return run_operator(
        state.workspace, definition_of(operator, "RunOperatorOnce"), 1, "RunOperatorOnce"
    )


def RunOperatorMultiple(operator: Any, num_runs: int) -> bool:
    """Make the operator once and run it `num_runs` times; give True.

    Its state is kept from run to run. Raises EnforceNotMet as `RunOperatorOnce`; the runs before
    the one that failed have had their effect.
    """
    caller = "RunOperatorMultiple"
    definition = definition_of(operator, caller)
    return run_operator(state.workspace, definition, _as_count(num_runs, caller), caller)


def RunOperatorsOnce(operators: Iterable[Any]) -> bool:
    """Run each of the operators once, in turn; give True.

    Raises EnforceNotMet as `RunOperatorOnce`; the operators before the one that failed have run.
    """
    caller = "RunOperatorsOnce"
    try:
        every = list(operators)
    except TypeError as cause:
        raise refusal("RunOperatorsOnce takes a sequence of operators", caller, cause) from cause
    for operator in every:
        run_operator(state.workspace, definition_of(operator, caller), 1, caller)
    return True


def run_operator(workspace: Workspace, definition: Definition, times: int, caller: str) -> bool:
    """Make an operator in `workspace` and run it so many times; give True."""
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


def _as_count(value: Any, caller: str) -> int:
    if not isinstance(value, int):
        raise EnforceTypeError(
            f"A number of runs is an int, not {type(value).__name__}.", "", caller
        )
    if value < 0:
        raise EnforceValueError(f"{value} is no number of runs.", "num_runs >= 0", caller)
    return value
