# SPDX-License-Identifier: Apache-2.0
"""compiled: the code of an old module, with conversions that NumPy dropped put into it.

``int(x)`` and ``float(x)`` of an array with one element and dimensions were numbers, before NumPy
2.4. Calls of these names take such an element out of its array first. Such an array could also be
assigned to one element of another, as in ``y[3] = x``; a call makes the assignment.
"""

from __future__ import annotations

import ast
from types import CodeType

from bridge.annotation import Any

# The builtin of old modules that takes an element out of its array.
ITEM = "__item_of_array__"
# The one that assigns to an element.
ASSIGN = "__assign_to_element__"


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


class _Numbers(ast.NodeTransformer):
    """Puts calls of `item` and `assign` into a module."""

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
        plain = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
        if name in ("int", "float") and plain and not node.keywords:
            function = ast.copy_location(ast.Name(ITEM, ast.Load()), node)
            call = ast.copy_location(ast.Call(function, node.args, []), node)
            node.args = [call]
        return node


def _is_element(place: ast.expr) -> bool:
    """Return whether an assignment is to an index without slices."""
    return isinstance(place, ast.Subscript) and not any(
        isinstance(part, (ast.Slice, ast.Starred)) for part in ast.walk(place.slice)
    )
