# SPDX-License-Identifier: Apache-2.0
"""Source: the ``caffe2`` package of an old PyTorch, in a folder or in its wheel, and its modules.

Old modules import ``future``, ``past`` and ``six``, and names that NumPy 2 no longer has. They see
them, by builtins of their own whose ``__import__`` gives them; no other module does. The code that
an old protoc generated does not run on today's protobuf; its compiled ``.proto`` file does.

Conversions that NumPy dropped are put into their code. ``int(x)``, ``float(x)`` and ``math.exp(x)``
of an array with one element and dimensions were numbers, before NumPy 2.4. Such calls take the
element out of its array first. Such an array could also be assigned to one element of another, as
in ``y[3] = x``; a call makes the assignment. Integers too large for their type wrapped around
before NumPy 2; so they do in ``np.array(x, dtype=np.int32)``, ``np.uint8(-1)`` and
``dtype.type(x)``.
"""

from __future__ import annotations

import ast
import builtins
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import find_spec
from types import CodeType, ModuleType

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.legacy.onnx_node import filling
from bridge.caffe2.legacy.stand_ins import old_view, stand_in

# The builtin of old modules that takes an element out of its array.
ITEM = "__item_of_array__"
# The one that assigns to an element.
ASSIGN = "__assign_to_element__"
# The one that calls what makes integers of a type.
WRAP = "__wrap_integers__"
_SIZES = (8, 16, 32, 64)
_MAKERS = {"array", "type", *(f"{kind}{size}" for kind in ("int", "uint") for size in _SIZES)}


def compiled(source: str, path: str) -> CodeType:
    """Return the code of a module."""
    tree = _Numbers().visit(ast.parse(source, path))
    return compile(tree, path, "exec", dont_inherit=True)


def item(x: Any) -> Any:
    """Return the element of an array that has one and dimensions; others unchanged."""
    if type(x).__module__ == "numpy" and getattr(x, "ndim", 0) > 0 and x.size == 1:
        return x.item()
    return x


def assign(target: Any, index: Any, value: Any) -> None:
    """Assign to ``target[index]``: to one element of an array also an array with one element."""
    if type(value).__module__ == "numpy" and type(target).__module__ == "numpy":
        place = target[index] if getattr(value, "size", 0) == 1 and value.ndim else value
        value = item(value) if getattr(place, "ndim", 1) == 0 else value
    target[index] = value


def wrap(make: Any, *args: Any, **named: Any) -> Any:
    """Return ``make(*args, **named)``; integers too large for a NumPy type wrap around."""
    try:
        return make(*args, **named)
    except OverflowError:
        import numpy as np

        kind = named.get("dtype", make)
        if len(args) != 1 or not (isinstance(kind, type) and issubclass(kind, np.integer)):
            raise
        return np.array(args[0]).astype(kind)[()]


class _Numbers(ast.NodeTransformer):
    """Puts calls of `item`, `assign` and `wrap` into a module."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        target = node.targets[0]
        several = isinstance(target, ast.Tuple)
        places = list(target.elts) if isinstance(target, ast.Tuple) else [target]
        if len(node.targets) > 1 or not any(map(_is_element, places)):
            return node
        after: list[ast.stmt] = []
        for i, place in enumerate(places):
            if not isinstance(place, ast.Subscript) or not _is_element(place):
                continue
            value: ast.expr = node.value
            if several:  # the value is kept until all are there
                value = ast.Name(f"__element_{i}__", ast.Load())
                places[i] = ast.Name(f"__element_{i}__", ast.Store())
            arguments = [place.value, place.slice, value]
            after.append(ast.Expr(ast.Call(ast.Name(ASSIGN, ast.Load()), arguments, [])))
        made: list[ast.stmt] = after
        if several:
            made = [ast.Assign([ast.Tuple(places, ast.Store())], node.value), *after]
        for one in made:
            ast.fix_missing_locations(ast.copy_location(one, node))
        return made

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        numbers = name in ("int", "float") and len(node.args) == 1 and not node.keywords
        if numbers or _is_of_math(node.func):
            node.args = [_call(ITEM, one) for one in node.args]
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MAKERS:
            node.args = [node.func, *node.args]
            node.func = ast.copy_location(ast.Name(WRAP, ast.Load()), node)
        return node


def _is_of_math(function: ast.expr) -> bool:
    """Return whether a function is written ``math.name``."""
    module = function.value if isinstance(function, ast.Attribute) else None
    return isinstance(module, ast.Name) and module.id == "math"


def _call(name: str, one: ast.expr) -> ast.expr:
    """Return a call of a builtin of old modules; starred arguments unchanged."""
    if isinstance(one, ast.Starred):
        return one
    function = ast.copy_location(ast.Name(name, ast.Load()), one)
    return ast.copy_location(ast.Call(function, [one], []), one)


def _is_element(place: ast.expr) -> bool:
    """Return whether an assignment is to an index without slices."""
    return isinstance(place, ast.Subscript) and not any(
        isinstance(part, (ast.Slice, ast.Starred)) for part in ast.walk(place.slice)
    )


class Source:
    """Where an old PyTorch's modules of Caffe2 lie: ``folder/caffe2``, or the same in a wheel.

    path: the wheel; a ``site-packages`` folder or another that has a ``caffe2`` folder; that folder
    itself; or the ``torch`` folder beside it. Wheels are read where they are, by zipimport.

    Raises EnforceNotMet: there is no Caffe2.
    """

    def __init__(self, path: str | os.PathLike[str], caller: str) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self.folder = self._folder(caller)

    def _folder(self, caller: str) -> str:
        """Return the folder or wheel that has the package ``caffe2``."""
        if not os.path.exists(self.path):
            raise EnforceNotMet(f"There is no file or folder {self.path!r}.", caller)
        parent, name = os.path.split(self.path)
        folders = [self.path]
        if name == "caffe2":
            folders = [parent]
        elif name == "torch":
            folders.append(parent)
        for folder in folders:
            if PathFinder.find_spec("caffe2", [folder]) is not None:
                return folder
        raise EnforceNotMet(
            f"{self.path!r} has no package caffe2: give an old PyTorch's wheel, its folder or its "
            "site-packages; versions 1.0 to 2.3 have Caffe2.",
            caller,
        )

    def find_spec(self, fullname: str) -> ModuleSpec | None:
        """Return the spec of a module in pure Python, None if there is none.

        Raises ModuleNotFoundError: there is a compiled one, which belongs to the old PyTorch.
        """
        package = fullname.rpartition(".")[0]
        folder = os.path.join(self.folder, *package.split("."))
        found = PathFinder.find_spec(fullname, [folder])
        if found is None or found.loader is None or found.origin is None:
            return self._folder_spec(fullname, os.path.join(folder, fullname[len(package) + 1 :]))
        if isinstance(found.loader, ExtensionFileLoader):
            raise ModuleNotFoundError(
                f"{fullname} is compiled in {self.path}, for the old PyTorch; nothing compiled is "
                "loaded from there.",
                name=fullname,
            )
        inner: Any = found.loader
        if inner.get_source(fullname) is None:
            return None
        found.loader = Loader(inner)
        found.cached = None
        return found

    def _folder_spec(self, fullname: str, folder: str) -> ModuleSpec | None:
        """Return the spec of a folder without ``__init__.py``, None if there is none."""
        if not os.path.isdir(folder) and fullname.replace(".", "/") not in self._folders_of_wheel:
            return None
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec

    @cached_property
    def _folders_of_wheel(self) -> set[str]:
        """The folders of Caffe2 in the wheel, which need not have entries of their own."""
        if not os.path.isfile(self.folder):
            return set()
        from zipfile import ZipFile

        with ZipFile(self.folder) as wheel:
            names = [name for name in wheel.namelist() if name.startswith("caffe2/")]
        return {name[:i] for name in names for i in range(len(name)) if name[i] == "/"}


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


_BUILTINS = {
    **vars(builtins),
    "__import__": _import,
    ITEM: item,
    ASSIGN: assign,
    WRAP: wrap,
}


def serialized_file(source: str, name: str) -> bytes:
    """Return the compiled ``.proto`` file, a FileDescriptorProto, within a generated module.

    Raises ImportError: the source has none.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        callee = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        given = [one.value for one in node.keywords if one.arg == "serialized_pb"]
        if callee == "AddSerializedFile":
            given += node.args[:1]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, bytes):
                return value.value
            if isinstance(value, ast.Call) and value.args:  # _b('...'), for Python 2
                text = value.args[0]
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    return text.value.encode("latin-1")
    raise ImportError(f"{name} is not a module that protoc generated.", name=name)


def define_messages(module: ModuleType, serialized: bytes) -> None:
    """Define the messages and enums of a compiled ``.proto`` file in a module.

    The modules of the files that it imports are imported first, as ``caffe2.proto.caffe2_pb2`` for
    ``caffe2/proto/caffe2.proto``.
    """
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    from bridge.caffe2.proto.message_classes import define

    for name in FileDescriptorProto.FromString(serialized).dependency:
        import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    define(vars(module), serialized)
