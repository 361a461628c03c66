# SPDX-License-Identifier: Apache-2.0
"""Name and device scopes: prefixes of blob names, and the device of new operators.

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

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceTypeError
from bridge.caffe2.base.messages import as_message, caffe2_pb2

__all__ = [
    "CurrentDeviceScope",
    "CurrentNameScope",
    "DeviceScope",
    "EmptyDeviceScope",
    "EmptyNameScope",
    "NameScope",
    "open_device_scopes",
]

# Caffe2's other modules take names apart by it.
_NAMESCOPE_SEPARATOR = "/"


class _Scopes(threading.local):
    names: str = ""
    device: Any = None


_scopes = _Scopes()
# One item for each device scope that is open in any thread: while it is empty, FeedBlob need not
# ask for the current one. Appending and popping are atomic.
open_device_scopes: list[None] = []


def CurrentNameScope() -> str:
    """Return the prefix of names, which ends in a slash; empty outside of every scope."""
    return _scopes.names


def CurrentDeviceScope() -> Any:
    """Return the DeviceOption of operators created now; None outside of every scope."""
    return _scopes.device


@contextmanager
def NameScope(prefix: str | None, reset: bool = False) -> Iterator[None]:
    """Prefix names with ``prefix/``, after the prefix of the enclosing scopes unless `reset`.

    None and the empty string add no prefix. Raises EnforceNotMet, also an AssertionError: `prefix`
    is not a string.
    """
    if prefix is not None and not isinstance(prefix, str):
        raise EnforceAssertionError(
            f"A name scope is a str, not {type(prefix).__name__}.", "NameScope"
        )
    old = _scopes.names
    added = prefix + _NAMESCOPE_SEPARATOR if prefix else ""
    _scopes.names = added if reset else old + added
    try:
        yield
    finally:
        _scopes.names = old


@contextmanager
def EmptyNameScope() -> Iterator[None]:
    """Add no prefix to names, whatever the enclosing scopes."""
    with NameScope("", reset=True):
        yield


@contextmanager
def DeviceScope(scope: Any, node_name: str | None = None) -> Iterator[None]:
    """Set the device of operators created within, and of NumPy arrays fed, to `scope`.

    scope: a DeviceOption. node_name: set in it; if None, the enclosing scope's. Its
    extra_info is extended by the enclosing scope's.

    Raises EnforceNotMet, also an AssertionError: `scope` is not a DeviceOption, or both arguments
    are None.
    """
    option = caffe2_pb2().DeviceOption()
    if scope:  # Caffe2 takes 0 for None
        try:
            option.CopyFrom(as_message(scope, "DeviceOption", "DeviceScope"))
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
        option.node_name = node_name
    if old is not None:
        if old.HasField("node_name") and not option.HasField("node_name"):
            option.node_name = old.node_name
        option.extra_info.extend(old.extra_info)
    option.extra_info.sort()
    _scopes.device = option
    open_device_scopes.append(None)
    try:
        yield
    finally:
        _scopes.device = old
        open_device_scopes.pop()


@contextmanager
def EmptyDeviceScope() -> Iterator[None]:
    """Set no device for operators created within, whatever the enclosing scopes."""
    old = _scopes.device
    _scopes.device = None
    try:
        yield
    finally:
        _scopes.device = old
