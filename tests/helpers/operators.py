# SPDX-License-Identifier: Apache-2.0
"""Operators for tests: registered under names that no other test uses."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from bridge import caffe2
from bridge.caffe2 import core, workspace

_numbers = itertools.count()


def operator_class(cls: type) -> Any:
    """Register an operator class under a name of its own, and give that name."""
    name = f"Test{cls.__name__}{next(_numbers)}"
    caffe2.register_operator(name)(cls)
    return name


def operator_of(body: Callable[[Any], Any], **attributes: Any) -> str:
    """Register an operator whose RunOnDevice is `body`, and give its name."""
    made = {"RunOnDevice": lambda self: body(self), "__module__": __name__, **attributes}
    return str(operator_class(type("Body", (caffe2.Operator,), made)))


def run_operator(op_type: str, inputs: list[str], outputs: list[str], **arguments: Any) -> None:
    """Run an operator of the type once, in the current workspace."""
    workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, **arguments))


def run(body: Callable[[Any], Any], inputs: Any, outputs: Any, **arguments: Any) -> Any:
    """Run an operator whose RunOnDevice is `body`, and gives None or a bool."""

    def told(op: Any) -> Any:
        given = body(op)
        return given if isinstance(given, bool) else None

    return workspace.RunOperatorOnce(
        core.CreateOperator(operator_of(told), inputs, outputs, **arguments)
    )
