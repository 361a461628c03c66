# SPDX-License-Identifier: Apache-2.0
"""Simplifies a program: names that stand for others, defaults, constants, and helpers of one line.

Each step leaves the program's result as it is; the runner runs it again all the same.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator

from bridge.annotation import Any

_SINGLE = (ast.Name, ast.Constant, ast.Attribute)  # values that may be written twice


def folded(tree: ast.Module) -> None:
    """Simplify a program in place, once; `trimmed` repeats it until nothing changes."""
    for node in list(tree.body):
        value = _returned(node)
        if isinstance(node, ast.FunctionDef) and value is not None:
            _inline(tree, node, value)
        elif isinstance(node, ast.Assign) and _is_alias(node):
            _Replace({node.targets[0].id: node.value}).visit(tree)  # type: ignore[attr-defined]
    for definition in list(_definitions(tree)):
        _drop_defaults(tree, *definition)
    _fold_attributes(tree)
    _Constants().visit(tree)
    _spread(tree)
    for one in list(ast.walk(tree)):
        if isinstance(one, ast.FunctionDef):
            _join_lines(tree, one)
        # One that was opened itself is not there any more.
        if isinstance(one, (ast.FunctionDef, ast.For)) and _is_in(tree, one):
            _open_calls(tree, one)


def _is_in(tree: ast.Module, node: ast.AST) -> bool:
    return any(one is node for one in ast.walk(tree))


def _uses(tree: ast.AST, name: str) -> int:
    """Return how often a name or an attribute is read."""
    return sum(
        getattr(one, "id", getattr(one, "attr", None)) == name
        and not isinstance(getattr(one, "ctx", None), ast.Store)
        for one in ast.walk(tree)
    )


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that get a value."""
    names = [one for one in nodes if isinstance(one, ast.Name)]
    return {one.id for one in names if isinstance(one.ctx, ast.Store)}


def _spread(tree: ast.Module) -> None:
    """Put the items of a list that one other list takes in the place of its name."""
    lists = {
        ast.unparse(node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.List):
            found: list[ast.expr] = []
            for one in node.elts:
                name = getattr(one.value, "id", "") if isinstance(one, ast.Starred) else ""
                found += lists[name].elts if name in lists and _uses(tree, name) == 1 else [one]
            node.elts = found


def _join_lines(tree: ast.Module, function: ast.FunctionDef) -> None:
    """Put the result of a function of capsules that only the next line reads in its place."""
    found: list[ast.stmt] = []
    for node in function.body:
        last = found[-1] if found else None
        if isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Attribute):
            name = last.targets[0].attr
            once = _uses(tree, name) == _uses(node, name) == 1
            if once and ast.unparse(last.value).startswith("capsule_"):
                _Attributes({name: last.value}).visit(node)
                found.pop()
        found.append(node)
    function.body = found


def _open_calls(tree: ast.Module, place: ast.FunctionDef | ast.For) -> None:
    """Put the lines of a function that is called once, in a statement, in the place of the call."""
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    found: list[ast.stmt] = []
    for node in place.body:
        call = node.value if isinstance(node, ast.Expr) else None
        function = functions.get(getattr(getattr(call, "func", None), "id", ""))
        if call is None or function is None or not isinstance(call, ast.Call):
            found.append(node)
            continue
        names = [one.arg for one in function.args.args]
        args = function.args
        fits = len(call.args) == len(names) and not (call.keywords or args.kwonlyargs or args.kwarg)
        within = [one for line in function.body for one in ast.walk(line)]
        fits = fits and not any(isinstance(one, (ast.Return, ast.FunctionDef)) for one in within)
        if not fits or _uses(tree, function.name) > 1 or _stored(within) & _stored(ast.walk(place)):
            found.append(node)
            continue
        values = dict(zip(names, call.args, strict=True))
        simple = {
            name: value
            for name, value in values.items()
            if isinstance(value, _SINGLE) or _uses(function, name) == 0
        }
        found += [
            ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)
            for name, value in values.items()
            if name not in simple
        ]
        found += [_Replace(simple).visit(copy.deepcopy(one)) for one in function.body]
        tree.body.remove(function)
    place.body = found


def _is_alias(node: ast.Assign) -> bool:
    value = node.value
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name) and isinstance(node.targets[0], ast.Name)


def _returned(node: ast.stmt) -> ast.expr | None:
    """Return the expression that a function of one line, without defaults, returns."""
    if isinstance(node, ast.FunctionDef) and not node.args.defaults and len(node.body) == 1:
        return (
            getattr(node.body[0], "value", None) if isinstance(node.body[0], ast.Return) else None
        )
    return None


class _Replace(ast.NodeTransformer):
    """Puts expressions in the place of names, and keywords in that of ``**`` of a name."""

    def __init__(self, values: dict[str, ast.expr], keywords: Any = None) -> None:
        self.values, self.keywords = values, keywords or {}

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id in self.values and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self.values[node.id])
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        found = []
        for keyword in node.keywords:
            if keyword.arg is None and getattr(keyword.value, "id", None) in self.keywords:
                found += copy.deepcopy(self.keywords[keyword.value.id])  # type: ignore[attr-defined]
            else:
                found.append(keyword)
        node.keywords = found
        return self.generic_visit(node)


class _Inline(ast.NodeTransformer):
    """Puts the expression that a function returns in the place of its calls."""

    def __init__(self, function: ast.FunctionDef, value: ast.expr) -> None:
        self.name, self.args, self.value = function.name, function.args, value
        used = [one.id for one in ast.walk(value) if isinstance(one, ast.Name)]
        self.times = {one.arg: used.count(one.arg) for one in function.args.args}

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        names = [one.arg for one in self.args.args]
        if not isinstance(node.func, ast.Name) or node.func.id != self.name:
            return node
        given = dict(zip(names, node.args, strict=False))
        given |= {one.arg: one.value for one in node.keywords if one.arg in names}
        more = [one for one in node.keywords if one.arg not in names]
        if len(given) != len(names) or len(node.args) > len(names):
            return node
        if any(isinstance(one, ast.Starred) for one in node.args) or (more and not self.args.kwarg):
            return node
        for name, value in given.items():
            if self.times[name] > 1 and not isinstance(value, _SINGLE):
                return node
        keywords = {self.args.kwarg.arg: more} if self.args.kwarg else {}
        return _Replace(given, keywords).visit(copy.deepcopy(self.value))


def _inline(tree: ast.Module, node: ast.FunctionDef, value: ast.expr) -> None:
    inner = [one for one in ast.walk(value) if isinstance(one, (ast.Lambda, ast.comprehension))]
    if any(isinstance(one, ast.Name) and one.id == node.name for one in ast.walk(value)) or inner:
        return
    if _is_same_call(node, value):
        _Replace({node.name: value.func}).visit(tree)  # type: ignore[attr-defined]
    for one in tree.body:
        if one is not node:
            _Inline(node, value).visit(one)


def _is_same_call(node: ast.FunctionDef, value: ast.expr) -> bool:
    """Return whether a function passes its arguments on to another, as they are."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, _SINGLE):
        return False
    passed = [getattr(one, "id", None) for one in value.args]
    more = [(one.arg, getattr(one.value, "id", None)) for one in value.keywords]
    kwarg = node.args.kwarg
    return passed == [one.arg for one in node.args.args] and more == (
        [(None, kwarg.arg)] if kwarg else []
    )


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield functions by the name that calls them, a class's ``__init__`` by that of the class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, ast.FunctionDef) and one.name == "__init__":
                    yield node.name, one


def _drop_defaults(tree: ast.Module, name: str, function: ast.FunctionDef) -> None:
    """Put its default in the place of a parameter that no call gives."""
    found = [one for one in ast.walk(tree) if getattr(one, "id", getattr(one, "attr", 0)) == name]
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and one.func in found]
    keywords = [one for call in calls for one in call.keywords]
    if len(calls) < len(found) or any(one.arg is None for one in keywords):
        return
    args = function.args
    given = {one.arg for one in keywords}
    for one, value in list(zip(args.kwonlyargs, args.kw_defaults, strict=True)):
        if one.arg in given or value is None:
            continue
        if isinstance(value, (ast.Constant, ast.Tuple)):
            if any(
                isinstance(node, ast.Name)
                and node.id == one.arg
                and isinstance(node.ctx, ast.Store)
                for node in ast.walk(function)
            ):
                continue
            function.body = [_Replace({one.arg: value}).visit(node) for node in function.body]
        elif any(isinstance(node, ast.Name) and node.id == one.arg for node in ast.walk(function)):
            continue
        place = args.kwonlyargs.index(one)
        del args.kwonlyargs[place], args.kw_defaults[place]
    known = {one.arg for one in (*args.args, *args.kwonlyargs)}
    if args.kwarg is not None and given <= known:
        empty = {args.kwarg.arg: ast.Dict([], [])}
        function.body = [
            _Replace(dict(empty), {args.kwarg.arg: []}).visit(n) for n in function.body
        ]
        args.kwarg = None


def _fold_attributes(tree: ast.Module) -> None:
    """Put a constant in the place of an attribute that gets it once."""
    stores: dict[str, list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            stores.setdefault(node.attr, []).append(None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            if getattr(target.value, "id", None) == "self" and _is_constant(node.value):
                stores[target.attr][0] = node.value
    known = {name: found[0] for name, found in stores.items() if len(found) == 1 and found[0]}
    _Attributes(known).visit(tree)


def _is_constant(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple):
        return all(isinstance(one, ast.Constant) for one in node.elts)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Dict) and not node.keys)


class _Attributes(ast.NodeTransformer):
    def __init__(self, known: dict[str, ast.expr]) -> None:
        self.known = known

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if node.attr in self.known and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self.known[node.attr])
        return node


class _Constants(ast.NodeTransformer):
    """Computes what is known: conditions, items of tuples, unions with empty dictionaries."""

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        if _is_constant(node.test):
            return node.body if ast.literal_eval(node.test) else node.orelse
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        if _is_constant(node.test):
            return node.body if ast.literal_eval(node.test) else node.orelse
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        both = _is_constant(node.left) and _is_constant(node.comparators[0])
        if both and isinstance(node.ops[0], (ast.Eq, ast.NotEq)):
            same = ast.dump(node.left) == ast.dump(node.comparators[0])
            return ast.Constant(same == isinstance(node.ops[0], ast.Eq))
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)) and _is_constant(node.left):
            same = ast.literal_eval(node.left) is None
            return ast.Constant(same == isinstance(node.ops[0], ast.Is))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        idle = isinstance(node.op, ast.And)  # True leaves `and` as it is, False `or`
        values = [
            one
            for one in node.values
            if not _is_constant(one) or bool(ast.literal_eval(one)) != idle
        ]
        if not values:
            return node.values[-1]
        if _is_constant(values[0]):
            return values[0]
        node.values = values
        return node if len(values) > 1 else values[0]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        if isinstance(node.value, ast.Tuple) and isinstance(node.slice, ast.Constant):
            return node.value.elts[node.slice.value]  # type: ignore[index]
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        self.generic_visit(node)
        node.values = [
            one.value
            if isinstance(one, ast.FormattedValue) and isinstance(one.value, ast.Constant)
            else one
            for one in node.values
        ]
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        pairs = [
            (key, value)
            for key, value in zip(node.keys, node.values, strict=True)
            if key is not None or not isinstance(value, ast.Dict) or value.keys
        ]
        node.keys, node.values = [key for key, _ in pairs], [value for _, value in pairs]
        return node
