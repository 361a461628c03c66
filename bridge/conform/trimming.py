# SPDX-License-Identifier: Apache-2.0
"""Shortens a program to the lines that it ran, and what these need."""

from __future__ import annotations

import ast
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

FILE = "<program>"
_PARTS = ("make", "from_dlpack", "to_numpy", "skip")
_MODULES = ("ctypes", "enum", "gc", "itertools", "np", "sys", "threading", "weakref")
# Calls that only read: an attribute of their result that nobody reads can go.
_VALUES = (ast.Call, ast.BinOp, ast.Compare, ast.Constant)
_READING = ("addressof", "array", "bytes", "integers", "len")


def traced(function: Callable[[], Any], ran: Any) -> Any:
    """Call a function, and set ``ran[n]`` to 1 for each line n of the program that runs.

    Lines that only a thread unknown to Python runs are not noted.
    """

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        if event == "line":
            ran[frame.f_lineno] = 1
        return note

    threading.settrace(note)
    sys.settrace(note)
    try:
        return function()
    finally:
        sys.settrace(None)
        threading.settrace(None)


def trimmed(program: str, ran: Any) -> str:
    """Return a program that does the same without the lines that did not run.

    A function that did not run stays as it is if one that ran refers to it: without a deleter's
    lines a program would show that it is never called by whatever library.
    Calls in conditions whose branch did not run are gone, too: run the result before you show it.
    """
    tree = _Ran(ran).visit(ast.parse(program))
    while _drop_unused(tree):
        pass
    lines = program.splitlines()
    found = lines[: next(n for n, line in enumerate(lines) if not line.startswith("#"))]
    for node in tree.body:
        text = [line for line in ast.unparse(node).splitlines() if line]
        if isinstance(node, ast.FunctionDef) and node.name == "show":
            text = ["", *text, "", *(line for line in lines if line.startswith("# What it needs"))]
        found += text
    return "\n".join(found) + "\n"


class _Ran(ast.NodeTransformer):
    """Takes out the statements that did not run, and branches around those that did."""

    def __init__(self, ran: Any) -> None:
        self.ran = ran

    def _did(self, body: list[ast.stmt]) -> bool:
        return bool(body) and bool(self.ran[body[0].lineno])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name not in _PARTS and self._did(node.body):
            node.body = self._block(node.body) or [ast.Pass()]
        return node

    def visit_If(self, node: ast.If) -> Any:
        if not self._did(node.body):
            return self._block(node.orelse)
        node.body = self._block(node.body)
        if node.orelse and not self._did(node.orelse):
            return node.body
        node.orelse = self._block(node.orelse)
        if not node.body and not node.orelse:
            return []
        node.body = node.body or [ast.Pass()]
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        node.body = self._block(node.body)
        node.handlers = [one for one in node.handlers if self._did(one.body)]
        node.orelse = self._block(node.orelse)
        node.finalbody = self._block(node.finalbody)
        if not node.handlers and not node.finalbody:
            return [*node.body, *node.orelse]
        node.body = node.body or [ast.Pass()]
        for one in node.handlers:
            one.body = self._block(one.body) or [ast.Pass()]
        return node

    def visit_For(self, node: ast.For) -> Any:
        node.body = self._block(node.body) or [ast.Pass()]
        node.orelse = self._block(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> Any:
        node.body = self._block(node.body) or [ast.Pass()]
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in body:
            if self.ran[node.lineno] or isinstance(node, (ast.Global, ast.Nonlocal)):
                kept = self.visit(node)
                found += kept if isinstance(kept, list) else [kept]
        return found


def _drop_unused(tree: ast.Module) -> bool:
    """Take out definitions, methods and attributes that nothing reads; return whether any was."""
    everything = list(ast.walk(tree))
    names = {
        one.id
        for one in everything
        if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store)
    }
    attributes = {
        one.attr
        for one in everything
        if isinstance(one, ast.Attribute) and not isinstance(one.ctx, ast.Store)
    }
    nothing = {
        one.name
        for one in tree.body
        if isinstance(one, ast.FunctionDef) and isinstance(one.body[0], ast.Pass)
    }
    before = len(everything)
    tree.body = [node for node in tree.body if _is_used(node, names)]
    for node in everything:
        if isinstance(node, ast.ClassDef):
            node.body = [one for one in node.body if _is_method_used(one, attributes)]
        elif isinstance(node, (ast.FunctionDef, ast.ExceptHandler, ast.For, ast.If)):
            body = [one for one in node.body if not _is_unread(one, attributes)]
            node.body = [one for one in body if not _is_idle(one, nothing)] or [ast.Pass()]
    return sum(1 for _ in ast.walk(tree)) < before


def _is_idle(node: ast.stmt, nothing: set[str]) -> bool:
    """Return whether a statement calls a function that does nothing, or has an empty branch."""
    if isinstance(node, ast.If):
        return isinstance(node.body[0], ast.Pass) and not node.orelse
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return isinstance(node.value.func, ast.Name) and node.value.func.id in nothing


def _is_used(node: ast.stmt, names: set[str]) -> bool:
    if isinstance(node, ast.Import):
        bound = node.names[0].asname or node.names[0].name
        return bound not in _MODULES or bound in names
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id in names
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return node.name in names
    return True


def _is_method_used(node: ast.stmt, attributes: set[str]) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.name.startswith("__"):
        return True
    return node.name in attributes


def _is_unread(node: ast.stmt, attributes: set[str]) -> bool:
    """Return whether a statement gives an attribute, which nobody reads, a value that is no owner.

    A reference to an object may be what keeps its memory alive.
    """
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Attribute):
        return False
    target, value = node.targets[0], node.value
    if not isinstance(target.value, ast.Name) or target.value.id != "self":
        return False  # a field of a structure
    if target.attr in attributes or not isinstance(value, _VALUES):
        return False
    calls = [one.func for one in ast.walk(value) if isinstance(one, ast.Call)]
    names = [one.attr if isinstance(one, ast.Attribute) else ast.unparse(one) for one in calls]
    return all(name in _READING for name in names)
