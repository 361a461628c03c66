# SPDX-License-Identifier: Apache-2.0
"""compiled: the code of an old module, with conversions that NumPy dropped put into it.

``int(x)``, ``float(x)`` and ``math.exp(x)`` of an array with one element and dimensions were
numbers, before NumPy 2.4. Such calls take the element out of its array first. Such an array could
also be assigned to one element of another, as in ``y[3] = x``; a call makes the assignment.
Integers too large for their type wrapped around before NumPy 2; so they do in
``np.array(x, dtype=np.int32)``, ``np.uint8(-1)`` and ``dtype.type(x)``.
"""

from __future__ import annotations

import ast
from types import CodeType

from bridge.annotation import Any

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
