# SPDX-License-Identifier: Apache-2.0
"""The program that shows a broken rule: the case, with its parts of the kit, and no more."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap

from bridge.conform.cases import MODULES
from bridge.conform.kit import export, given, lying, source, structures, table, table_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from bridge.conform.rule import Rule

__all__ = ["definitions", "program_of"]

_KIT = (structures, given, export, lying, source, table, table_source, *MODULES)
_IMPORTS = {
    "ctypes": "ctypes",
    "enum": "enum",
    "gc": "gc",
    "itertools": "itertools",
    "np": "numpy as np",
    "sys": "sys",
    "threading": "threading",
    "weakref": "weakref",
}
_WIDTH = 92


class _Plain(ast.NodeTransformer):
    """Takes out lines that a program spares: docstrings, annotations, helpers that skip a case."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name == "settle":
            return ast.parse("gc.collect()", mode="eval").body
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
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)


def _without_docstring(node: Any) -> Any:
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        node.body = node.body[1:] or [ast.Pass()]
    return node


@functools.cache
def definitions() -> dict[str, ast.stmt]:
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
                    found[name] = ast.fix_missing_locations(_Plain().visit(node))
    return found


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _needed(nodes: list[ast.stmt]) -> tuple[list[ast.stmt], set[str]]:
    """Return the definitions that code needs, in order, and all names that it uses."""
    known = definitions()
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


def program_of(rule: Rule, case: Callable[..., None], setup: str) -> str:
    """Return a program that ends with the broken rule, without the bridge.

    setup: the lines that define the subject's parts.
    """
    function = definitions()[case.__name__]
    assert isinstance(function, ast.FunctionDef)
    helpers, used = _needed(function.body)
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
