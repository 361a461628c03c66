# SPDX-License-Identifier: Apache-2.0
"""Loader: runs the source of an old module, with imports that find the modules of its time.

Old modules import ``future``, ``past`` and ``six``, and names that NumPy 2 no longer has. They see
them, by builtins of their own whose ``__import__`` gives them; no other module does.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import InspectLoader
from importlib.util import find_spec
from types import ModuleType

from bridge.annotation import Any
from bridge.caffe2.legacy.messages import define_messages, serialized_file
from bridge.caffe2.legacy.onnx_node import filling
from bridge.caffe2.legacy.source_code import ASSIGN, ITEM, assign, compiled, item
from bridge.caffe2.legacy.stand_ins import stand_in
from bridge.caffe2.legacy.views import old_view


class Loader(InspectLoader):
    """Loads a module from the source that another loader reads."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def is_package(self, fullname: str) -> bool:
        """Return whether the module is a package."""
        return bool(self._inner.is_package(fullname))

    def get_source(self, fullname: str) -> str:
        """Return the text of the module; tracebacks show it."""
        return str(self._inner.get_source(fullname))

    def get_filename(self, fullname: str) -> str:
        """Return the path of the module, which is inside the wheel for modules of a wheel."""
        return str(self._inner.get_filename(fullname))

    def get_data(self, path: str) -> bytes:
        """Return the content of a file beside the module."""
        return bytes(self._inner.get_data(path))

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; of code that protoc generated, define the messages instead."""
        source = self.get_source(module.__name__)
        if module.__name__.endswith("_pb2"):
            define_messages(module, serialized_file(source, module.__name__))
            return
        vars(module)["__builtins__"] = _BUILTINS
        exec(compiled(source, self.get_filename(module.__name__)), vars(module))
        change = _CHANGES.get(module.__name__)
        if change is not None:
            change(module)


def _fill_bools(backend: Any) -> None:
    """Change the filling of tensors: protobuf 7 refuses bools in lists of integers."""
    backend.Caffe2Backend._create_tensor_filling_op = staticmethod(filling)


def _leave_at_exit(workspace: Any) -> None:
    """Change the end of workspaces: at the exit of the interpreter they are left as they are."""

    def __del__(self: Any, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not exiting():
            self.ResetWorkspace()

    workspace.Workspace.__del__ = __del__


_CHANGES: dict[str, Callable[[Any], None]] = {
    "caffe2.python.onnx.backend": _fill_bools,
    "caffe2.python.onnx.workspace": _leave_at_exit,
}


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Import a module as ``__import__`` does, for old modules."""
    try:
        found = builtins.__import__(name, globals, locals, fromlist or (), level)
    except ModuleNotFoundError as error:
        substitute = None if level else stand_in(name, fromlist)
        if substitute is not None:
            return substitute
        user = (globals or {}).get("__name__")
        top = (error.name or "").partition(".")[0]
        if top in ("", "caffe2") or error.name != name:
            raise
        library = "protobuf" if top == "google" else top
        state = f"is not installed: pip install {library}"
        if error.name != top and find_spec(top) is not None and library == top:
            state = f"the installed {top} does not have: it is a module of the past"
        raise ModuleNotFoundError(
            f"{user}, of the old PyTorch, needs {error.name}, which {state}", name=error.name
        ) from error
    return old_view(found)


_BUILTINS = {**vars(builtins), "__import__": _import, ITEM: item, ASSIGN: assign}
