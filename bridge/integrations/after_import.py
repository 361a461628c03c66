# SPDX-License-Identifier: Apache-2.0
"""Call a function when a module has been imported, without importing it."""

from __future__ import annotations

import sys
import warnings

from bridge.annotation import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class _Finder:
    """Stands first in ``sys.meta_path``, lets the others find modules, and notes their execution.

    The loaders that they return stay as they are, but for `exec_module` of the one object that
    loads the module; so tools that look at ``module.__loader__`` see a loader that they know.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, Callable[[], None]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the next finder that knows the module; None for other modules."""
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(name, path, target)
            if spec is not None:
                self._note_execution(spec.loader, name)
                return spec
        return None

    def _note_execution(self, loader: Any, name: str) -> None:
        execute = getattr(loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            execute(module)
            self.imported(name)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            return  # a loader without attributes of its own, as of frozen modules

    def imported(self, name: str) -> None:
        """Call the functions that wait for the module `name`."""
        callback = self.waiting.pop(name, None)
        if not self.waiting and self in sys.meta_path:
            sys.meta_path.remove(self)
        if callback is None:
            return
        try:
            callback()
        except Exception as error:  # noqa: BLE001  the import is someone else's, and succeeded
            warnings.warn(f"bridge could not register itself with {name}: {error!r}", stacklevel=2)


_finder = _Finder()


def after_import(name: str, callback: Callable[[], None]) -> None:
    """Call `callback()` once the module `name` has been imported; now if that has been.

    An error in it is a warning, since the import that it follows succeeded. Nothing is called for a
    module that is being imported at this moment.
    """
    module = sys.modules.get(name)
    if module is None:
        _finder.waiting[name] = callback
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
    elif not getattr(getattr(module, "__spec__", None), "_initializing", False):
        callback()
