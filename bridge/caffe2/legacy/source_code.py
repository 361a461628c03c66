# SPDX-License-Identifier: Apache-2.0
"""compiled: the code of an old module, with what NumPy no longer does put into it.

``int(x)`` and ``float(x)`` of an array with one element and dimensions were numbers, before NumPy
2.4. Calls of these names take such an element out of its array first.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

__all__ = ["ITEM", "compiled", "item"]

# The builtin of old modules that takes an element out of its array.
ITEM = "__item_of_array__"


def compiled(source: str, path: str) -> CodeType:
    """Return the code of a module."""
    tree = _Numbers().visit(ast.parse(source, path))
    return compile(tree, path, "exec", dont_inherit=True)


def item(x: Any) -> Any:
    """Return the element of an array that has one and dimensions; others unchanged."""
    if type(x).__module__ == "numpy" and getattr(x, "ndim", 0) > 0 and x.size == 1:
        return x.item()
    return x


class _Numbers(ast.NodeTransformer):
    """Puts a call of `item` into calls of int and float of one argument."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        plain = len(node.args) == 1 and not isinstance(node.args[0], ast.Starred)
        if name in ("int", "float") and plain and not node.keywords:
            function = ast.copy_location(ast.Name(ITEM, ast.Load()), node)
            call = ast.copy_location(ast.Call(function, node.args, []), node)
            node.args = [call]
        return node
