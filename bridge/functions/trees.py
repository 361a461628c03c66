# SPDX-License-Identifier: Apache-2.0
"""Containers of tensors taken apart, and put together again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Structure", "flatten"]

_LEAF = None


class Structure:
    """The containers of a tree, without its leaves. Equal and hashed by what it is made of."""

    __slots__ = ("node",)

    def __init__(self, node: Any) -> None:
        self.node = node

    def __hash__(self) -> int:
        return hash(self.node)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and self.node == other.node

    def rebuild(self, leaves: list[Any]) -> Any:
        """Return a tree of this structure with `leaves`."""
        return _built(self.node, iter(leaves))


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of `tree` in order, and its structure."""
    leaves: list[Any] = []
    return leaves, Structure(_structure(tree, leaves))


def _structure(tree: Any, leaves: list[Any]) -> Any:
    cls = type(tree)
    if cls is tuple or cls is list:
        return cls, None, tuple([_structure(item, leaves) for item in tree])
    if isinstance(tree, dict):
        factory = getattr(tree, "default_factory", None)
        return cls, (tuple(tree), factory), tuple([_structure(x, leaves) for x in tree.values()])
    if isinstance(tree, tuple) and hasattr(cls, "_fields"):
        return cls, "fields", tuple([_structure(item, leaves) for item in tree])
    if isinstance(tree, list):
        return cls, None, tuple([_structure(item, leaves) for item in tree])
    if is_dataclass(tree) and not isinstance(tree, type):
        names = tuple(field.name for field in fields(tree))
        return cls, names, tuple([_structure(getattr(tree, name), leaves) for name in names])
    leaves.append(tree)
    return _LEAF


def _built(structure: Any, leaves: Any) -> Any:
    if structure is _LEAF:
        return next(leaves)
    cls, extra, children = structure
    items = [_built(child, leaves) for child in children]
    if cls is tuple or cls is list:
        return cls(items)
    if issubclass(cls, dict):
        keys, factory = extra
        if factory is not None:
            return cls(factory, zip(keys, items, strict=True))
        return cls(zip(keys, items, strict=True))
    if extra == "fields":
        return cls(*items)
    if issubclass(cls, list):
        return cls(items)
    copy = object.__new__(cls)
    for name, item in zip(extra, items, strict=True):
        object.__setattr__(copy, name, item)
    return copy
