# SPDX-License-Identifier: Apache-2.0
"""Running one operator on a table of blobs."""

from __future__ import annotations

import operator as _operator

from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.execution.blob_table import BlobTable, missing_from, remove_unused
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.operator import Operator, failure
from bridge.caffe2.execution.registry import create_operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_operator(table: BlobTable, definition: Definition, caller: str, times: int = 1) -> Operator:
    """Create an operator on the blobs of `table`, run it `times` times, and return it.

    Raises EnforceNotMet, from the error that stopped it. If the first run fails, the blobs are
    unchanged, and those created for its outputs are removed.
    """
    new = missing_from(table, definition.outputs)
    done = 0
    try:
        operator = create_operator(definition, table, caller)
        while done < times:
            operator._run()
            done += 1
    except BaseException as cause:
        if not done:
            remove_unused(table._blobs, new)
        if isinstance(cause, Exception):
            raise failure(definition, cause, caller) from cause
        raise
    return operator


def count_of(value: Any, name: str, caller: str) -> int:
    """Return the number of runs `name` as an int.

    Raises EnforceNotMet, also a TypeError: `value` is not an integer.
    """
    try:
        return _operator.index(value)
    except TypeError as cause:
        raise EnforceTypeError(f"{name} is an int, not {type(value).__name__}.", caller) from cause
