# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.lazy_dyndep``: libraries of operators that are loaded when needed.

>>> from bridge.caffe2 import core, lazy_dyndep
>>> lazy_dyndep.RegisterOpsLibrary("@/caffe2/caffe2/fb/operators:some_ops")
Ignoring @/caffe2/caffe2/fb/operators:some_ops: it is not a file.
>>> core.RefreshRegisteredOperators()
"""

from __future__ import annotations

import os
from collections.abc import Callable

from bridge.annotation import Any
from bridge.caffe2.definitions import dyndep
from bridge.caffe2.definitions.operator_types import RegisterLazyImport

__all__ = ["GetImportedOpsLibraries", "RegisterOpsLibrary", "SetErrorHandler"]

_waiting: set[Any] = set()
_handler: Callable[[BaseException], object] | None = None


def RegisterOpsLibrary(name: Any) -> None:
    """Register a file, which `core.RefreshRegisteredOperators` loads; ignore others than files."""
    if not isinstance(name, (str, os.PathLike)) or not os.path.exists(name):
        print(f"Ignoring {name}: it is not a file.")
        return
    _waiting.add(name)


def SetErrorHandler(handler: Callable[[BaseException], object] | None) -> None:
    """Set the function that gets the error of a library that is not loaded; None raises it.

    Caffe2 drops the error where there is no handler.
    """
    global _handler
    _handler = handler


def GetImportedOpsLibraries() -> set[str]:
    """Load the libraries that wait, and return the names of the loaded ones."""
    _load()
    return dyndep.GetImportedOpsLibraries()


def _load() -> None:
    """Load each library that waits, once. Raises as `dyndep.InitOpsLibrary`, or the handler."""
    while _waiting:
        name = _waiting.pop()
        try:
            dyndep.InitOpsLibrary(name, trigger_lazy=False)
        except Exception as error:
            if _handler is None:
                raise
            _handler(error)


RegisterLazyImport(_load)
