# SPDX-License-Identifier: Apache-2.0
"""The structure of the package: imports point down its layers, and no files form a circle.

The layers are read from the docstring of `bridge`. Every import counts, wherever it stands: inside
functions, under TYPE_CHECKING, in ``.pyx``, ``.pxd`` and ``.pyi`` files, and by name in a string.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import bridge
from bridge.caffe2.install import _MODULES

ROOT = Path(bridge.__file__).parent
# An import statement of a Cython file, with its names; parentheses may span lines.
CYTHON_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(bridge[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^\n#]*)"
    r"|c?import[ \t]+(bridge[\w.]*))",
    re.MULTILINE,
)
MODULE_NAME = re.compile(r"bridge(\.\w+)+")
# Files whose job is to name modules in strings.
NAMES_MODULES = {
    "bridge/__init__.py": "names that are imported at first use",
    "bridge/caffe2/__init__.py": "names that are imported at first use",
    "bridge/caffe2/brew/__init__.py": "names that are imported at first use",
    "bridge/caffe2/c_extension.py": "names that are imported at first use",
    "bridge/caffe2/core/__init__.py": "names that are imported at first use",
    "bridge/caffe2/optimizer/__init__.py": "names that are imported at first use",
    "bridge/caffe2/schema/__init__.py": "names that are imported at first use",
    "bridge/caffe2/task/__init__.py": "names that are imported at first use",
    "bridge/caffe2/workspace.py": "names that are imported at first use",
    "bridge/caffe2/install.py": "the modules that stand in for caffe2's",
    "bridge/integrations/torch_compile.py": "modules that torch.compile runs and does not trace",
    "bridge/see/type_names.py": "the names that users know classes by",
}


def layers() -> list[str]:
    """Return the layers that the docstring of `bridge` lists, lowest first."""
    block = re.search(r"lowest first::\n\n((?:    .*\n|\n)+)", f"{bridge.__doc__}\n")
    assert block is not None
    return block[1].split()


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = ["bridge", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> dict[str, list[Path]]:
    """Return the source files of each module; a compiled module has several.

    Stubs that no module is behind, such as those of torch's functions, are types alone.
    """
    found: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(ROOT.rglob("*.p*")):
        if path.suffix in (".py", ".pyi", ".pyx", ".pxd"):
            found[module_name(path)].append(path)
    return {
        name: paths for name, paths in found.items() if {one.suffix for one in paths} != {".pyi"}
    }


SOURCES = sources()
# The modules of the package that `install` puts in the place of Caffe2's.
FACES = {place for place in _MODULES.values() if place is not None}


def resolved(module: str, name: str) -> str:
    """Return the module that ``from module import name`` reads."""
    return f"{module}.{name}" if f"{module}.{name}" in SOURCES else module


def python_imports(text: str) -> Iterator[str]:
    """Yield the modules that a .py or .pyi file names in imports and in strings of code."""
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (resolved(node.module or "", alias.name) for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
            and MODULE_NAME.fullmatch(node.value)
        ):
            yield node.value


def cython_imports(text: str) -> Iterator[str]:
    """Yield the modules that a .pyx or .pxd file imports or cimports."""
    for source, names, whole in CYTHON_IMPORT.findall(text):
        if whole:
            yield whole
        for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names):
            yield resolved(source, name)


def imports() -> dict[str, set[str]]:
    """Return the modules of the package that each module imports."""
    found: dict[str, set[str]] = {}
    for module, paths in SOURCES.items():
        named: set[str] = set()
        for path in paths:
            read = python_imports if path.suffix in (".py", ".pyi") else cython_imports
            named.update(read(path.read_text()))
        found[module] = {name for name in named if name in SOURCES and name != module}
    return found


IMPORTS = imports()


def layer_of(module: str) -> str:
    """Return the layer of a module: its own name or that of a folder, without ``bridge.``.

    In `bridge/caffe2` a file, or a package such as ``core`` by itself, is a name of Caffe2:
    all of these are the layer ``caffe2.*``.
    """
    name = module.partition(".")[2]
    if name in ("caffe2", "caffe2.install", "caffe2.__main__"):
        return "caffe2"
    folder, _, rest = name.partition(".")
    if folder == "caffe2":
        place = f"caffe2.{rest.partition('.')[0]}"
        is_face = name == place and module in FACES
        return "caffe2.*" if is_face or not (ROOT / place.replace(".", "/")).is_dir() else place
    return folder or "bridge"


def test_every_module_is_in_a_layer() -> None:
    known = layers()
    assert len(known) == len(set(known))
    assert {layer_of(module) for module in SOURCES} == set(known)


def test_imports_point_down_the_layers() -> None:
    place = {layer: position for position, layer in enumerate(layers())}
    upward = {
        f"{module} -> {other}"
        for module, others in IMPORTS.items()
        for other in others
        if place[layer_of(other)] > place[layer_of(module)]
    }
    assert upward == set()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of two and more, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            position = stack.index(node)
            component, stack[position:] = stack[position:], []
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def test_no_files_form_a_circle() -> None:
    assert circles(IMPORTS) == []


def test_the_search_finds_circles() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()}
    assert circles(graph) == [["a", "b", "c"]]


def test_files_of_caffe2_are_the_modules_of_caffe2_python() -> None:
    files = {f"bridge.caffe2.{path.stem}" for path in (ROOT / "caffe2").glob("*.py")}
    others = {
        f"bridge.caffe2{name}" for name in (".__init__", ".__main__", ".install", ".workspace")
    }
    assert files - others <= FACES


def test_each_module_of_caffe2_python_is_one_file_or_one_package() -> None:
    assert SOURCES.keys() >= FACES
    assert len(list((ROOT / "caffe2").glob("[a-z]*[a-z]"))) <= 45


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_nothing_in_a_folder_imports_a_facade(module: str) -> None:
    if not layer_of(module).startswith("caffe2.") or layer_of(module) == "caffe2.*":
        return
    assert [other for other in IMPORTS[module] if layer_of(other) == "caffe2.*"] == []


def test_modules_are_named_in_strings_only_where_listed() -> None:
    found = set()
    for paths in SOURCES.values():
        for path in paths:
            text = path.read_text()
            if path.suffix in (".py", ".pyi"):
                strings = {name for name in python_imports(text) if f'"{name}"' in text}
            else:
                strings = set(re.findall(r"(?<!\")\"(bridge(?:\.\w+)+)\"(?!\")", text))
            if strings & SOURCES.keys():
                found.add(path.relative_to(ROOT.parent).as_posix())
    assert found <= NAMES_MODULES.keys()
