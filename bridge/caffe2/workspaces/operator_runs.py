# SPDX-License-Identifier: Apache-2.0
"""Running operators in a workspace; `run_once` has RunOperatorOnce.

>>> import numpy as np
>>> from bridge.caffe2 import core, workspace
>>> workspace.FeedBlob("x", np.array([1.0, 2.0], np.float32))
True
>>> double = core.CreateOperator("Scale", "x", "x", scale=2.0)
>>> workspace.RunOperatorMultiple(double, 3), workspace.FetchBlob("x")
(True, array([ 8., 16.], dtype=float32))
>>> workspace.RunOperatorsOnce([double, double]), workspace.FetchBlob("x")
(True, array([32., 64.], dtype=float32))
"""

from __future__ import annotations

import operator as _operator
from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.execution.definition import definition_of
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.run_once import run_operator


def RunOperatorMultiple(operator: Any, num_runs: int) -> bool:
    """Create an operator in the current workspace and run it `num_runs` times; return True.

    Its attributes last for all runs. Raises EnforceNotMet as `RunOperatorOnce`; the runs before the
    one that failed have had their effect.
    """
    caller = "RunOperatorMultiple"
    definition = definition_of(operator, caller)
    times = count_of(num_runs, "num_runs", caller)
    run_operator(current.workspace, definition, caller, times)
    return True


def RunOperatorsOnce(operators: Iterable[Any]) -> bool:
    """Run each of the operators once, in order; return True.

    Raises EnforceNotMet as `RunOperatorOnce`; the operators before the one that failed have run.
    """
    caller = "RunOperatorsOnce"
    with wrapping("RunOperatorsOnce takes a sequence of operators", caller, TypeError):
        every = list(operators)
    for operator in every:
        run_operator(current.workspace, definition_of(operator, caller), caller)
    return True


def count_of(value: Any, name: str, caller: str) -> int:
    """Return the number of runs `name` as an int.

    Raises EnforceNotMet, also a TypeError: `value` is not an integer.
    """
    try:
        return _operator.index(value)
    except TypeError as cause:
        raise EnforceTypeError(f"{name} is an int, not {type(value).__name__}.", caller) from cause
