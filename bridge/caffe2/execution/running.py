# SPDX-License-Identifier: Apache-2.0
"""Running one operator on a table of blobs."""

from __future__ import annotations

import operator as _operator

from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.execution.blob_table import BlobTable, find_blob, remove_unused
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.operator import failure
from bridge.caffe2.execution.registry import class_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run_operator(table: BlobTable, definition: Definition, times: int, caller: str) -> bool:
    """Create an operator on the blobs of `table` and run it `times` times; return True.

    Raises EnforceNotMet, from the error that stopped it. If the first run fails, the blobs are
    unchanged, and those created for its outputs are removed.
    """
    new = [name for name in definition.outputs if find_blob(table, name) is None]
    done = 0
    try:
        operator = class_for(definition, caller)(definition, table)
        while done < times:
            operator._run()
            done += 1
    except BaseException as cause:
        if not done:
            remove_unused(table._blobs, new)
        if isinstance(cause, Exception):
            raise failure(definition, cause, caller) from cause
        raise
    return True


def count_of(value: Any, name: str, caller: str) -> int:
    """Return the number of runs `name` as an int.

    Raises EnforceNotMet, also a TypeError: `value` is not an integer.
    """
    try:
        return _operator.index(value)
    except TypeError as cause:
        raise EnforceTypeError(f"{name} is an int, not {type(value).__name__}.", caller) from cause
