# SPDX-License-Identifier: Apache-2.0
"""The signatures of compiled functions, with the types that their stubs have."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import bridge

_ROOT = Path(bridge.__file__).parent
# Generated, and hundreds of lines: torch's documentation has these.
_LEFT_OUT = {"torch_functions", "torch_methods", "torch_results"}


@cache
def _signatures() -> dict[str, tuple[str, str | None]]:
    """Return (parameters, result) for the full name of each function and method of all stubs."""
    found: dict[str, tuple[str, str | None]] = {}

    def add(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                add(node.body, f"{prefix}.{node.name}")
            elif isinstance(node, ast.FunctionDef):
                overloaded = any(ast.unparse(one) == "overload" for one in node.decorator_list)
                if overloaded or ast.unparse(node.args).startswith("*args: Any"):
                    continue  # the docstring's own says more than one of several
                if node.args.args and node.args.args[0].arg in ("self", "cls"):
                    del node.args.args[0]
                result = None if node.returns is None else ast.unparse(node.returns)
                found[f"{prefix}.{node.name}"] = f"({ast.unparse(node.args)})", result

    for path in _ROOT.rglob("*.pyi"):
        if path.stem not in _LEFT_OUT:
            name = ".".join(["bridge", *path.relative_to(_ROOT).with_suffix("").parts])
            add(ast.parse(path.read_text("utf-8")).body, name)
    return found


def signature_of(name: str) -> tuple[str, str | None] | None:
    """Return the signature of a public name, as ``bridge.at.Tensor.view``; None: no stub has it."""
    signatures = _signatures()
    module, _, last = name.rpartition(".")
    try:
        owner = importlib.import_module(module)
    except ImportError:  # a class
        above, _, class_name = module.rpartition(".")
        cls = getattr(importlib.import_module(above), class_name, None)
        for one in getattr(cls, "__mro__", ()):
            found = signatures.get(f"{one.__module__}.{one.__qualname__}.{last}")
            if found is not None:
                return found
        return None
    home = getattr(getattr(owner, last, None), "__module__", None)
    if isinstance(getattr(owner, last, None), type):
        found = signatures.get(f"{home}.{last}.__init__")
        return None if found is None else (found[0], None)
    return signatures.get(f"{home}.{last}") or signatures.get(f"bridge.front.{last}")
