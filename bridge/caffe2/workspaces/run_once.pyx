# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""RunOperatorOnce and its kin: an operator that has run is neither parsed nor looked up again.

A message may change between two runs, so the definition is found by the message's bytes, which take
a tenth of a microsecond to serialize. An operator whose calls are recorded is kept by the workspace
if its blobs are small, until one of the workspace's blobs is removed; so its program can run again.
"""

from bridge.c10.python_api cimport claim, find_in, let_go
from bridge.caffe2.execution.operator_core cimport DefinitionCore, OperatorCore, run
from bridge.exchange.torch_settings cimport is_neutral
from bridge.caffe2.workspaces.current cimport (
    Current,
    blobs_of,
    find_ready,
    ready_of,
    workspace_of,
)

import operator as _operator

from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.execution.blob_table import missing_from, remove_unused
from bridge.caffe2.execution.definition import definition_of
from bridge.caffe2.execution.definition import definitions as _by_bytes
from bridge.caffe2.execution.operator import failure
from bridge.caffe2.execution.registry import create_operator
from bridge.caffe2.definitions.operator_types import registry as _operators
from bridge.caffe2.workspaces.current import current as _instance

cdef enum:
    MOST_READY = 1024

cdef Current _current = _instance
cdef dict _definitions = _by_bytes
cdef object _registry = _operators
cdef object _message_class = None   # our OperatorDef, once a message has been seen
cdef object _serialize = None       # its method, since look-ups in a message are slow


cdef bytes _bytes_of(object operator):
    """Return the bytes of an OperatorDef of our class, or bytes unchanged; else None."""
    global _message_class, _serialize
    if type(operator) is bytes:
        return <bytes>operator
    if _message_class is None:
        if type(operator).__name__ != "OperatorDef":
            return None
        _message_class = caffe2_pb2().OperatorDef
        _serialize = _message_class.SerializeToString
    if type(operator) is _message_class:
        try:
            return _serialize(operator)
        except Exception:       # a required field is missing; `definition_of` raises the error
            return None
    return None


def RunOperatorOnce(operator: Any) -> bool:
    """Create the operator and run it once, in the current workspace; return True.

    operator: an OperatorDef, as a message of any class with ``SerializeToString`` or as bytes.

    Raises EnforceNotMet, from the error of the operator: not an OperatorDef, no operator of that
    type, an input is missing, or it failed; the error names the operator, its inputs and outputs.
    The outputs are then unchanged, and no blobs are created.

    >>> import numpy as np
    >>> from bridge.caffe2 import core, workspace
    >>> workspace.FeedBlob("x", np.array([-1.0, 2.0], np.float32))
    True
    >>> workspace.RunOperatorOnce(core.CreateOperator("Relu", "x", "y"))
    True
    >>> workspace.FetchBlob("y")
    array([0., 2.], dtype=float32)
    """
    cdef DefinitionCore definition = None
    cdef OperatorCore kept
    cdef bytes data = _bytes_of(operator)
    if data is not None:
        definition = <DefinitionCore>find_in(_definitions, data)
    if definition is None:
        definition = definition_of(operator, "RunOperatorOnce")
    elif definition.generation == <long>_registry.generation:
        kept = <OperatorCore>find_ready(_current, definition)
        if kept is not None and _run_again(definition, kept, blobs_of(_current)):
            return True
    workspace = workspace_of(_current)
    kept = _run_new(workspace, definition, "RunOperatorOnce", 1)
    try:
        if kept.is_repeatable():
            ready = <dict>workspace._ready
            if len(ready) >= MOST_READY:
                ready.clear()
            kept._workspace = None      # which would keep itself alive
            ready[definition] = kept
    except MemoryError:
        pass        # it has run, and is kept only to run faster again
    return True


def RunOperatorMultiple(operator: Any, num_runs: int) -> bool:
    """Create an operator in the current workspace and run it `num_runs` times; return True.

    Its attributes last for all runs. Raises EnforceNotMet as `RunOperatorOnce`; the runs before the
    one that failed have had their effect.

    >>> import numpy as np
    >>> from bridge.caffe2 import core, workspace
    >>> workspace.FeedBlob("x", np.array([1.0, 2.0], np.float32))
    True
    >>> double = core.CreateOperator("Scale", "x", "x", scale=2.0)
    >>> workspace.RunOperatorMultiple(double, 3), workspace.FetchBlob("x")
    (True, array([ 8., 16.], dtype=float32))
    """
    caller = "RunOperatorMultiple"
    definition = definition_of(operator, caller)
    times = count_of(num_runs, "num_runs", caller)
    _run_new(workspace_of(_current), definition, caller, times)
    return True


def RunOperatorsOnce(operators: Iterable[Any]) -> bool:
    """Run each of the operators once, in order; return True.

    Raises EnforceNotMet as `RunOperatorOnce`; the operators before the one that failed have run.

    >>> import numpy as np
    >>> from bridge.caffe2 import core, workspace
    >>> workspace.FeedBlob("x", np.array([1.0, 2.0], np.float32))
    True
    >>> double = core.CreateOperator("Scale", "x", "x", scale=2.0)
    >>> workspace.RunOperatorsOnce([double, double]), workspace.FetchBlob("x")
    (True, array([4., 8.], dtype=float32))
    """
    caller = "RunOperatorsOnce"
    with wrapping("RunOperatorsOnce takes a sequence of operators", caller, TypeError):
        every = list(operators)
    for operator in every:
        _run_new(workspace_of(_current), definition_of(operator, caller), caller, 1)
    return True


def count_of(value: Any, name: str, caller: str) -> int:
    """Return the number of runs `name` as an int.

    Raises EnforceNotMet, also a TypeError: `value` is not an integer.
    """
    try:
        return _operator.index(value)
    except TypeError as cause:
        raise EnforceTypeError(f"{name} is an int, not {type(value).__name__}.", caller) from cause


def run_operator(
    table: BlobTable, DefinitionCore definition not None, str caller, times: int = 1
) -> Operator:
    """Create an operator on the blobs of `table`, run it `times` times, and return it.

    Raises EnforceNotMet, from the error that stopped it. If the first run fails, the blobs are
    unchanged, and those created for its outputs are removed.
    """
    return _run_new(table, definition, caller, times)


cdef OperatorCore _run_new(object table, DefinitionCore definition, str caller, object times):
    cdef dict blobs = table._blobs
    cdef OperatorCore operator
    cdef list new = [name for name in definition.outputs if find_in(blobs, name) is None]
    cdef object done = 0
    if new:
        new = missing_from(table, new)
    try:
        if definition.generation == <long>_registry.generation:     # most often
            operator = <OperatorCore?>definition.cls(definition, table)
        else:
            operator = <OperatorCore?>create_operator(definition, table, caller)
        while done < times:
            run(operator)
            done += 1
    except BaseException as cause:
        if not done:
            remove_unused(blobs, new)
        if isinstance(cause, Exception):
            raise failure(definition, cause, caller, "", blobs) from cause
        raise
    return operator


cdef bint _run_again(DefinitionCore definition, OperatorCore operator, dict blobs) except -1:
    """Run an operator that has been kept; return False, with nothing done, if it cannot run now."""
    if not operator.has_blobs_of(blobs) or not is_neutral():
        return False
    if not claim(&operator.is_busy):    # by another thread
        return False
    try:
        if not operator.repeat():
            run(operator)
            if not operator.is_repeatable():
                ready_of(_current).pop(definition, None)
    except BaseException as cause:
        ready_of(_current).pop(definition, None)
        if isinstance(cause, Exception):
            raise failure(definition, cause, "RunOperatorOnce", "", blobs) from cause
        raise
    finally:
        let_go(&operator.is_busy)
    return True
