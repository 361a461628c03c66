# SPDX-License-Identifier: Apache-2.0
"""The program that shows a broken rule: the case, with its parts of the kit, and no more."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap

from bridge.annotation import Any
from bridge.conform.cases import MODULES
from bridge.conform.kit import export, given, lying, short, source, structures, table, table_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.conform.rule import Rule

__all__ = ["definitions", "program_of"]

_KIT = (structures, given, export, lying, source, short, table, table_source, *MODULES)
_IMPORTS = {
    "ctypes": "ctypes",
    "enum": "enum",
    "gc": "gc",
    "itertools": "itertools",
    "np": "numpy as np",
    "sys": "sys",
    "types": "types",
    "threading": "threading",
    "weakref": "weakref",
}
_WIDTH = 98


_SHORT = {"Source": "ShortSource", "given": "short_given"}
_NEW = "({'max_version': (1, 3)},)"
_BOTH = "({'max_version': (1, 3)}, {'max_version': None})"
LEVELS = ((0, True), (1, True), (2, True), (3, True), (2, False), (3, False))


class _Plain(ast.NodeTransformer):
    """Takes out lines that a program spares: docstrings, annotations, helpers that skip a case.

    level: 0, sources are arrays of NumPy; 1, their capsules are changed; 2, and their deleters
    counted; 3, sources of the kit. new: producers are asked in the new way only.
    """

    def __init__(self, level: int, new: bool) -> None:
        self.level, self.new = level, new

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        found: list[ast.expr] = []
        for one in node.elts:
            inner = one.value if isinstance(one, ast.Starred) else None
            found += inner.elts if isinstance(inner, ast.Tuple) else [one]
        node.elts = found
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if self.level < 3:
            node.id = _SHORT.get(node.id, node.id)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        self.generic_visit(node)
        if self.level == 0 and ast.unparse(node).startswith("self.exports.append(ShortExport"):
            return ast.parse("if fields:\n    raise ValueError(fields)").body[0]
        if self.level == 1 and ast.unparse(node) == "self.count()":
            return ast.Pass()
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name == "settle":
            return ast.parse("gc.collect()", mode="eval").body
        if name in ("calls", "ways") and (self.new or self.level < 3):
            return ast.parse(_NEW if self.new else _BOTH, mode="eval").body
        if name == "asked" and self.level < 3:
            method = ast.Attribute(node.args[0], "__dlpack__", ast.Load())
            return ast.Call(method, node.args[1:], node.keywords)
        if name not in ("made", "imported", "values_of"):
            return node
        call = ast.Call(node.args[0], node.args[1:], node.keywords)
        if name != "values_of":
            return call
        return ast.Call(ast.parse("np.array", mode="eval").body, [call], [])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        node.returns = None
        return _without_docstring(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        self.generic_visit(node)
        return _without_docstring(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if self.level == 0 and ast.unparse(node.target) == "self.exports":
            return ast.Pass()  # a case that reads them needs another level
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _without_docstring(node: Any) -> Any:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        node.body = node.body[1:] or [ast.Pass()]
    return node


@functools.cache
def definitions(level: int = 3, new: bool = False) -> dict[str, ast.stmt]:
    """Return the definitions of kit and cases, by name, in an order in which it can be run."""
    found: dict[str, ast.stmt] = {}
    for module in _KIT:
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names = [node.name]
            elif isinstance(node, ast.Assign):
                names = [one.id for one in node.targets if isinstance(one, ast.Name)]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            else:
                continue
            for name in names:
                if name not in ("__all__", "TYPE_CHECKING"):
                    found[name] = ast.fix_missing_locations(_Plain(level, new).visit(node))
    return found


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _needed(nodes: list[ast.stmt], level: int, new: bool) -> tuple[list[ast.stmt], set[str]]:
    """Return the definitions that code needs, in order, and all names that it uses."""
    known = definitions(level, new)
    used: set[str] = set()
    left = set().union(*(_names(node) for node in nodes))
    while left:
        name = left.pop()
        used.add(name)
        if name in known:
            left |= _names(known[name]) - used
    needed = [node for name, node in known.items() if name in used]
    attributes = {
        one.attr
        for node in (*needed, *nodes)
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
    }
    return [_trimmed(node, attributes) for node in needed], used


def _trimmed(node: ast.stmt, attributes: set[str]) -> ast.stmt:
    """Return a definition; a class without the methods that no code calls."""
    if not isinstance(node, ast.ClassDef):
        return node
    body = [
        one
        for one in node.body
        if not isinstance(one, ast.FunctionDef)
        or one.name.startswith("__")
        or one.name in attributes
    ]
    return ast.ClassDef(node.name, node.bases, node.keywords, body, node.decorator_list)


def program_of(
    rule: Rule, case: Callable[..., None], setup: str, level: int = 3, new: bool = False
) -> str:
    """Return a program that ends with the broken rule, without the bridge.

    setup: the lines that define the subject's parts. level, new: of `LEVELS`.
    """
    function = definitions(level, new)[case.__name__]
    assert isinstance(function, ast.FunctionDef)
    helpers, used = _needed(function.body, level, new)
    there = {_name_of(node) for node in ast.parse(setup).body}
    optional = [f"{one.arg} = None" for one in function.args.args if one.arg not in there]
    imports = sorted(text for name, text in _IMPORTS.items() if name in used)
    if "sys" not in imports:
        imports = sorted([*imports, "sys"])
    show = ast.parse("def show(): pass").body[0]
    assert isinstance(show, ast.FunctionDef)
    show.body = function.body
    lines = [
        *textwrap.wrap(rule.text, _WIDTH, initial_indent="# ", subsequent_indent="# "),
        *textwrap.wrap(f"[{rule.source}]", _WIDTH, initial_indent="# ", subsequent_indent="# "),
        *(f"import {name}" for name in imports),
        *_used_parts(setup, {one.arg for one in function.args.args}),
        *optional,
        "",
        ast.unparse(show),
        "",
        "# What it needs of DLPack, by ctypes:",
        "broken = sys.exit",
        *(["skip = lambda reason: sys.exit(0)"] if "skip" in used else []),
        *(ast.unparse(node) for node in helpers),
        "show()",
    ]
    return "\n".join(lines) + "\n"


def _name_of(node: ast.stmt) -> str | None:
    """Return the name that a statement defines, if it is a function or an assignment."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return getattr(node, "name", None)


def _used_parts(setup: str, wanted: set[str]) -> list[str]:
    """Return the lines of the setup, without the functions that the case does not take."""
    found = []
    for node in ast.parse(setup).body:
        name = _name_of(node)
        if name is None or name in wanted or name not in ("make", "from_dlpack", "to_numpy"):
            found.append(ast.get_source_segment(setup, node) or "")
    return found
