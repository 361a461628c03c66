# SPDX-License-Identifier: Apache-2.0
"""Name and device scopes: what operators that are made within are called, and where they run.

Scopes are per thread. Follows caffe2/python/scope.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import core, scope
>>> with core.NameScope("a"), core.NameScope("b"):
...     core.ScopedName("x"), scope.CurrentNameScope()
('a/b/x', 'a/b/')
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.c10.errors import EnforceAssertionError, EnforceTypeError
from bridge.caffe2.base.messages import as_message, caffe2_pb2
from bridge.caffe2.workspaces.workspace import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "CurrentDeviceScope",
    "CurrentNameScope",
    "DeviceScope",
    "EmptyDeviceScope",
    "EmptyNameScope",
    "NameScope",
]

NAMESCOPE_SEPARATOR = "/"


class _Scopes(threading.local):
    names: str = ""
    device: Any = None


_scopes = _Scopes()


def CurrentNameScope() -> str:
    """Return the prefix of names, which ends in a slash; empty outside of every scope."""
    return _scopes.names


def CurrentDeviceScope() -> Any:
    """Return the DeviceOption of operators that are made now; None outside of every scope."""
    return _scopes.device


@contextmanager
def NameScope(prefix: str | None, reset: bool = False) -> Iterator[None]:
    """Prefix names by ``prefix/``, within the scopes around it or, with `reset`, without them.

    None and the empty string prefix nothing. Raises EnforceNotMet, also an AssertionError: `prefix`
    is no string.
    """
    if prefix is not None and not isinstance(prefix, str):
        raise EnforceAssertionError(
            f"A name scope is a str, not {type(prefix).__name__}.", "NameScope"
        )
    old = _scopes.names
    added = prefix + NAMESCOPE_SEPARATOR if prefix else ""
    _scopes.names = added if reset else old + added
    try:
        yield
    finally:
        _scopes.names = old


@contextmanager
def EmptyNameScope() -> Iterator[None]:
    """Prefix nothing within, whatever the scopes around it."""
    with NameScope("", reset=True):
        yield


@contextmanager
def DeviceScope(scope: Any, node_name: str | None = None) -> Iterator[None]:
    """Have operators that are made within run on the device of the DeviceOption `scope`.

    NumPy arrays that are fed within go there, too.

    `node_name` is set in it, or else inherited from the scope around; extra_info is that of both.

    Raises EnforceNotMet, also an AssertionError: `scope` is no DeviceOption, or both are None.
    """
    made = caffe2_pb2().DeviceOption()
    if scope:  # as Caffe2, which takes 0 for none
        try:
            made.CopyFrom(as_message(scope, "DeviceOption", "DeviceScope"))
        except EnforceTypeError as cause:
            raise EnforceAssertionError(cause.message, cause.caller) from cause
    elif not node_name:
        raise EnforceAssertionError(
            "A device scope names a device or a node.",
            "DeviceScope",
            condition="scope or node_name",
        )
    old = _scopes.device
    if node_name:
        made.node_name = node_name
    if old is not None:
        if old.HasField("node_name") and not made.HasField("node_name"):
            made.node_name = old.node_name
        made.extra_info.extend(old.extra_info)
    made.extra_info.sort()
    _scopes.device = made
    with state.lock:
        state.device_scopes += 1
    try:
        yield
    finally:
        _scopes.device = old
        with state.lock:
            state.device_scopes -= 1


@contextmanager
def EmptyDeviceScope() -> Iterator[None]:
    """Have operators that are made within say no device, whatever the scopes around it."""
    old = _scopes.device
    _scopes.device = None
    try:
        yield
    finally:
        _scopes.device = old
