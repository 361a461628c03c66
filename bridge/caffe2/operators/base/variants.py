# SPDX-License-Identifier: Apache-2.0
"""Operators that differ from a base class only in attributes."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.execution.operator import Operator

__all__ = ["register_variant"]


def register_variant(
    name: str,
    base: type[Operator],
    description: str | None = None,
    engine: str = "",
    /,
    **attributes: object,
) -> None:
    """Register the operator `name`: a subclass of `base` with these class attributes.

    `description` is its docstring, by default that of `base`.
    """
    members = {
        "__doc__": description or base.__doc__,
        "__module__": base.__module__,
        **attributes,
    }
    register_operator(name, engine=engine)(type(name, (base,), members))
