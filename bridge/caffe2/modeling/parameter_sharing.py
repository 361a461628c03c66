# SPDX-License-Identifier: Apache-2.0
"""Parameters shared between name scopes.

Follows caffe2/python/modeling/parameter_sharing.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.definitions.scope import CurrentNameScope

__all__ = ["ParameterSharing", "ParameterSharingContext", "parameter_sharing_context"]


class ParameterSharingContext:
    """Name scopes that use the parameters of other scopes: a stack of dicts."""

    def __init__(self) -> None:
        self._overrides: list[dict[str, str]] = []

    def _shared(self, scope: str) -> str:
        """Return the scope that holds the parameters of `scope`; both end in a slash.

        The longest start of `scope` that is overridden is replaced, as often as possible.
        """
        merged = {key: value for level in self._overrides for key, value in level.items()}
        starts = [key for key in merged if scope.startswith(key)]
        if not starts:
            return scope
        start = max(starts, key=len)
        other = merged[start]
        return scope if other == scope else self._shared(other) + scope[len(start) :]

    def get_parameter_name(self, name: str) -> str:
        """Return the name of the parameter `name` of the current name scope."""
        return self._shared(CurrentNameScope()) + name

    def add_scope_overrides(self, shared_scopes: dict[str, str]) -> None:
        """Let each scope of the dict have the parameters of another; names end in a slash."""
        self._overrides.append(shared_scopes)

    def pop(self) -> None:
        """Undo the last `add_scope_overrides`; raise an AssertionError if there is none."""
        if not self._overrides:
            raise EnforceAssertionError(
                "pop without add_scope_overrides.", "ParameterSharingContext.pop"
            )
        self._overrides.pop()


parameter_sharing_context = ParameterSharingContext()


@contextmanager
def ParameterSharing(shared_scopes: dict[str, str]) -> Iterator[None]:
    """Let name scopes within the block have the parameters of other scopes.

    shared_scopes: scopes, relative to the current one, and the scopes whose parameters they have.

    >>> from bridge.caffe2 import brew, core, model_helper
    >>> from bridge.caffe2.modeling.parameter_sharing import ParameterSharing
    >>> model = model_helper.ModelHelper(name="sharing_doc")
    >>> with ParameterSharing({"b": "a"}):
    ...     for scope in ("a", "b"):
    ...         with core.NameScope(scope):
    ...             y = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
    >>> model.params
    [BlobReference("a/y_w"), BlobReference("a/y_b")]

    Raises EnforceNotMet, also an AssertionError: the argument is not a dict, or a scope is the
    start of the one that it would share.
    """
    _check(shared_scopes)
    here = CurrentNameScope()
    parameter_sharing_context.add_scope_overrides(
        {_with_slash(here + key): _with_slash(here + to) for key, to in shared_scopes.items()}
    )
    try:
        yield
    finally:
        parameter_sharing_context.pop()


def _check(shared_scopes: Any) -> None:
    if not isinstance(shared_scopes, dict):
        raise EnforceAssertionError(
            f"Expected a dict of name scopes, not {shared_scopes!r}.", "ParameterSharing"
        )
    for scope, other in shared_scopes.items():
        if other.startswith(scope):
            raise EnforceAssertionError(
                f"Illegal override for parameter sharing. {scope} is prefix of {other}",
                "ParameterSharing",
            )


def _with_slash(scope: str) -> str:
    return scope if not scope or scope.endswith("/") else f"{scope}/"
