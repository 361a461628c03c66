# SPDX-License-Identifier: Apache-2.0
"""Comparing OperatorDefs.

Follows OpAlmostEqual, caffe2/python/utils.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.messages import copied


def OpAlmostEqual(op_a: Any, op_b: Any, ignore_fields: Any = None) -> bool:
    """Return whether two OperatorDefs are equal apart from some fields.

    ignore_fields: the name of a field or a list of names. Raises EnforceNotMet: an operator is not
    an OperatorDef (also a TypeError), or a name is not a str (also an AssertionError).

    >>> from bridge.caffe2 import core, utils
    >>> a, b = (core.CreateOperator("Relu", "x", "y", name=name) for name in "ab")
    >>> utils.OpAlmostEqual(a, b), utils.OpAlmostEqual(a, b, "name")
    (False, True)
    """
    fields = [ignore_fields] if isinstance(ignore_fields, str) else ignore_fields or []
    if not all(isinstance(field, str) for field in fields):
        raise EnforceAssertionError(
            f"Expect each field is text type, but got {fields}", "OpAlmostEqual"
        )
    copies = []
    for op in (op_a, op_b):
        message = copied(op, "OperatorDef", "OpAlmostEqual")
        for field in fields:
            message.ClearField(field)
        copies.append(message)
    return bool(copies[0] == copies[1])
