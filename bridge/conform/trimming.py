# SPDX-License-Identifier: Apache-2.0
"""Shortens a program to the lines that it ran, and what these need."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Callable
from types import FrameType

from bridge.annotation import Any
from bridge.conform.folding import folded

FILE = "<program>"
_PARTS = ("make", "from_dlpack", "to_numpy", "skip")
_MODULES = ("ctypes", "enum", "gc", "itertools", "np", "sys", "threading", "types", "weakref")
# Calls that only read: an attribute of their result that nobody reads can go.
_VALUES = (ast.Call, ast.BinOp, ast.Compare, ast.Constant, ast.Tuple, ast.Dict, ast.List)
_READING = ("addressof", "array", "bytes", "integers", "len")


def traced(function: Callable[[], Any], ran: Any) -> Any:
    """Call a function, and count in ``ran[n]``, up to 255, how often line n of the program runs.

    Lines that only a thread unknown to Python runs are not noted.
    """

    def note(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        if event == "line":
            ran[frame.f_lineno] = min(ran[frame.f_lineno] + 1, 255)
        return note

    threading.settrace(note)
    sys.settrace(note)
    try:
        return function()
    finally:
        sys.settrace(None)
        threading.settrace(None)


def trimmed(program: str, ran: Any, *, tests: bool = False) -> str:
    """Return a program that does the same without the lines that did not run.

    A function that did not run stays as it is if one that ran refers to it: without a deleter's
    lines a program would show that it is never called by whatever library.
    Calls in conditions whose branch did not run are gone, too, unless tests is true: run the
    result before you show it.
    """
    tree = _Split().visit(_Ran(ran, tests).visit(ast.parse(program)))
    before = ""
    while before != (before := ast.unparse(tree)):
        folded(tree)
        _drop_unused(tree)
    lines = program.splitlines()
    header = lines[: next(n for n, line in enumerate(lines) if not line.startswith("#"))]
    if "itertools.islice" in before:
        tree.body.insert(0, ast.parse("import itertools").body[0])
    imports = [one for node in tree.body if isinstance(node, ast.Import) for one in node.names]
    names = sorted({f"{one.name} as {one.asname}" if one.asname else one.name for one in imports})
    helpers = [node for node in tree.body if not isinstance(node, ast.Import)]
    (show,) = (node for node in helpers if getattr(node, "name", None) == "show")
    helpers = [node for node in helpers if node is not show and ast.unparse(node) != "show()"]
    assert isinstance(show, ast.FunctionDef)
    found = [*header, f"import {', '.join(names)}"]
    for node in (*helpers, *show.body):
        found += [line for line in ast.unparse(node).splitlines() if line]
    text = re.sub(r"\b[Ss]hort_?(?=Source|Watch|given)", "", "\n".join(found))
    return text.replace("ShortExport", "Exported") + "\n"


class _Split(ast.NodeTransformer):
    """Makes an assignment of several values several, and one that is returned a return."""

    def visit_Assign(self, node: ast.Assign) -> Any:
        target, value = node.targets[0], node.value
        if not isinstance(target, ast.Tuple):
            return node
        if isinstance(value, ast.Tuple) and isinstance(target.elts[0], ast.Attribute):
            pairs = zip(target.elts, value.elts, strict=True)
            return [ast.Assign([one], of, lineno=node.lineno) for one, of in pairs]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        self.generic_visit(node)
        found: list[ast.stmt] = []
        for one in node.body:
            # A value with a name that only the next line uses.
            value = one.value if isinstance(one, (ast.Return, ast.Assign)) else None
            name = ast.unparse(found[-1]).partition(" = ")[0] if found else ""
            times = sum(getattr(n, "id", "") == name for n in ast.walk(node))
            if getattr(value, "id", None) == name and times == 2:
                one.value = found.pop().value  # type: ignore[attr-defined]
            found.append(one)
        node.body = found
        return node


class _Ran(ast.NodeTransformer):
    """Takes out the statements that did not run, and branches around those that did."""

    def __init__(self, ran: Any, tests: bool) -> None:
        self.ran, self.tests = ran, tests
        self.inside: list[ast.AST] = []  # the classes and functions around

    def _did(self, body: list[ast.stmt]) -> bool:
        return bool(body) and bool(self.ran[body[0].lineno])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if node.name not in _PARTS and self._did(node.body):
            helps = node.name != "show" and not isinstance(node.body[-1], (ast.If, ast.For))
            self.inside.append(node)
            rest = next((n for n, one in enumerate(node.body) if not self.ran[one.lineno]), None)
            if rest and helps and not self._says_broken(node.body[rest - 1]):
                # It was left by an exception or an early return, and may run to its end elsewhere.
                node.body = [*self._block(node.body[:rest]), *node.body[rest:]]
            else:
                node.body = self._block(node.body) or [ast.Pass()]
            self.inside.pop()
        return node

    def _says_broken(self, node: ast.stmt) -> bool:
        """Return whether a statement ended the case."""
        return any(
            isinstance(one, ast.Expr)
            and ast.unparse(one).startswith("broken(")
            and self.ran[one.lineno]
            for one in ast.walk(node)
        )

    def visit_If(self, node: ast.If) -> Any:
        if not self._did(node.body):
            if ast.unparse(node.body[-1]).startswith(("continue", "skip('ok: ")):
                return node
            test: list[ast.stmt] = [ast.Expr(node.test)] if self.tests else []
            return test + self._block(node.orelse)
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
        node.handlers = [
            one for one in node.handlers if self._did(one.body) or not self._ends(one.body[-1])
        ]
        node.orelse = self._block(node.orelse)
        node.finalbody = self._block(node.finalbody)
        if not node.handlers and not node.finalbody:
            return [*node.body, *node.orelse]
        node.body = node.body or [ast.Pass()]
        for one in node.handlers:
            last = one.body[-1]
            leaves = isinstance(last, (ast.Continue, ast.Return, ast.Break))
            leaves = leaves or ast.unparse(last).startswith("skip(")
            one.body = self._block(one.body) or [last if leaves else ast.Pass()]
        return node

    def _ends(self, node: ast.stmt) -> bool:
        """Return whether a handler's last line is not for libraries that do it right."""
        text = ast.unparse(node)
        skips = text.startswith("skip(") and getattr(self.inside[-1], "name", "") != "show"
        return isinstance(node, ast.Raise) or text.startswith("broken(") or skips

    def visit_For(self, node: ast.For) -> Any:
        items = node.iter.elts if isinstance(node.iter, ast.Tuple) else []
        if items and node.body:
            items[:] = items[: self.ran[node.body[0].lineno]]  # the others were not tried
        elif node.body and self.ran[node.lineno] == self.ran[node.body[0].lineno] < 255:
            node.iter = ast.parse(
                f"itertools.islice({ast.unparse(node.iter)}, {self.ran[node.lineno]})", mode="eval"
            ).body
        node.body = self._block(node.body) or [ast.Pass()]
        node.orelse = self._block(node.orelse)
        stays = any(isinstance(one, (ast.Continue, ast.Break)) for one in ast.walk(node))
        if len(items) == 1 and not stays and not isinstance(items[0], ast.Starred):
            return [ast.Assign([node.target], items[0], lineno=node.lineno), *node.body]
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


def _drop_unused(tree: ast.Module) -> None:
    """Take out definitions, methods, attributes and memory's watches that nothing reads."""
    everything = list(ast.walk(tree))
    names, attributes = _read(everything)
    nothing = {
        one.name
        for one in tree.body
        if isinstance(one, ast.FunctionDef) and isinstance(one.body[0], ast.Pass)
    }
    tree.body = [node for node in tree.body if _is_used(node, names)]
    for node in everything:
        if isinstance(node, ast.ClassDef):
            node.body = [one for one in node.body if _is_method_used(one, attributes)]
            _inline_methods(node, everything)
        elif isinstance(node, (ast.FunctionDef, ast.ExceptHandler, ast.For, ast.If)):
            body = [one for one in node.body if not _is_unread(one, names, attributes)]
            body = [one for one in body if not _is_idle(one, nothing)]
            node.body = [one for one in body if not isinstance(one, ast.Pass)] or [ast.Pass()]
    _Unwatched(names, attributes).visit(tree)


def _read(nodes: list[ast.AST]) -> tuple[set[str], set[str]]:
    """Return the names and the attributes that code reads."""
    read = [one for one in nodes if not isinstance(getattr(one, "ctx", None), ast.Store)]
    names = {one.id for one in read if isinstance(one, ast.Name)}
    # Structures have fields of the same names.
    fields = [one for one in read if getattr(getattr(one, "value", 0), "attr", "") == "managed"]
    fields += [one for one in read if getattr(getattr(one, "value", 0), "id", "") == "managed"]
    found = [one.attr for one in read if isinstance(one, ast.Attribute) and one not in fields]
    grown = [
        one.value.attr
        for one in read
        if isinstance(one, ast.Attribute)
        and one.attr == "append"
        and isinstance(one.value, ast.Attribute)
    ]
    only = {name for name in grown if grown.count(name) == found.count(name)}
    return names, {*found, *(f"{name}.append" for name in only)}


class _Unwatched(ast.NodeTransformer):
    """Makes plain arrays of those whose memory nothing watches."""

    def __init__(self, names: set[str], attributes: set[str]) -> None:
        self.read = names | attributes

    def visit_Assign(self, node: ast.Assign) -> Any:
        self.generic_visit(node)
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and _calls(value, "short_given"):
            array, watch = target.elts
            if getattr(watch, "attr", getattr(watch, "id", "")) not in self.read:
                return ast.Assign([array], _array(value), lineno=0)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        return _array(node.value) if _calls(node.value, "short_given") else node


def _calls(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", None) == name


def _array(call: Any) -> ast.expr:
    """Return a new array of the values that `short_given` gets."""
    (values,) = call.args
    if isinstance(values, ast.Call) and getattr(values.func, "attr", "") != "broadcast_to":
        return values
    return ast.Call(ast.parse("np.array", mode="eval").body, [values], [])


def _is_idle(node: ast.stmt, nothing: set[str]) -> bool:
    """Return whether a statement calls a function that does nothing, or has an empty branch."""
    if isinstance(node, ast.If):
        return isinstance(node.body[0], ast.Pass) and not node.orelse
    if isinstance(node, ast.For):
        return isinstance(node.body[0], ast.Pass)
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


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, (ast.Dict, ast.List)) and not ast.unparse(node)[1:-1]


def _inline_methods(node: ast.ClassDef, everything: list[ast.AST]) -> None:
    """Put a method that one other method calls, as a statement, in the place of the call."""
    calls = [one.attr for one in everything if isinstance(one, ast.Attribute)]
    for method in list(node.body):
        if not isinstance(method, ast.FunctionDef) or len(method.args.args) > 1:
            continue
        if calls.count(method.name) > 1 or any(isinstance(one, ast.Return) for one in method.body):
            continue
        for other in node.body:
            if isinstance(other, ast.FunctionDef) and other is not method:
                text = [ast.unparse(one) for one in other.body]
                if f"self.{method.name}()" in text:
                    place = text.index(f"self.{method.name}()")
                    other.body[place : place + 1] = method.body
                    node.body.remove(method)


def _is_method_used(node: ast.stmt, attributes: set[str]) -> bool:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id.startswith("_") or node.targets[0].id in attributes
    if not isinstance(node, ast.FunctionDef) or node.name.startswith("__"):
        return getattr(node, "name", "") != "__del__"
    return node.name in attributes


def _is_unread(node: ast.stmt, names: set[str], attributes: set[str]) -> bool:
    """Return whether a statement gives an attribute, which nobody reads, a value that is no owner.

    A reference to an object may be what keeps its memory alive.
    """
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        of = getattr(node.value.func, "value", None)
        grows = isinstance(of, ast.Attribute) and f"{of.attr}.append" in attributes
        return grows and isinstance(node.value.args[0], ast.Name)
    if isinstance(node, ast.Expr):
        return not any(isinstance(one, ast.Call) for one in ast.walk(node))
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id not in names
    if not isinstance(node, ast.Assign):
        return False
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Name):
        pure = isinstance(value, ast.Constant) or ast.unparse(value).startswith("arguments.get(")
        return target.id not in names and (pure or _is_empty(value))
    if not isinstance(target, ast.Attribute):
        return False
    if not isinstance(target.value, ast.Name) or target.value.id != "self":
        return False  # a field of a structure
    if target.attr in attributes:
        return False
    if ast.unparse(value).endswith(".ctypes.data"):
        return True
    if not isinstance(value, _VALUES):
        return False
    calls = [one.func for one in ast.walk(value) if isinstance(one, ast.Call)]
    called = [one.attr if isinstance(one, ast.Attribute) else ast.unparse(one) for one in calls]
    return all(name in _READING for name in called)
