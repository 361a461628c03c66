# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.scope``: name scopes and device scopes.

>>> from bridge.caffe2 import core, scope
>>> with core.NameScope("a"), core.NameScope("b"):
...     core.ScopedName("x"), scope.CurrentNameScope()
('a/b/x', 'a/b/')
"""

from __future__ import annotations

from bridge.caffe2.definitions.scopes import (
    CurrentDeviceScope,
    CurrentNameScope,
    DeviceScope,
    EmptyDeviceScope,
    EmptyNameScope,
    NameScope,
)

__all__ = [
    "CurrentDeviceScope",
    "CurrentNameScope",
    "DeviceScope",
    "EmptyDeviceScope",
    "EmptyNameScope",
    "NameScope",
]

# Caffe2's other modules take names apart by it.
_NAMESCOPE_SEPARATOR = "/"
