# SPDX-License-Identifier: Apache-2.0
"""Trees, until bridge.trees is there."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace

from bridge.exchange.import_tensor import has_door

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = ["Flat", "Leaf", "at", "flatten", "is_tensor", "is_tree"]


class Leaf:
    """A leaf: its object, its path as text, and the keys of the path."""

    __slots__ = ("keys", "path", "value")

    def __init__(self, value: Any, path: str, keys: tuple[Any, ...]) -> None:
        self.value = value
        self.path = path
        self.keys = keys


class Flat:
    """The leaves of a tree, and how to make such a tree of other leaves."""

    def __init__(self, leaves: list[Leaf], tree: Any) -> None:
        self.leaves = leaves
        self._tree = tree

    def rebuild(self, values: Sequence[Any]) -> Any:
        """Return a tree of the same containers with these leaves."""
        places = {id(leaf.value): value for leaf, value in zip(self.leaves, values, strict=True)}
        return _mapped(self._tree, places)


def _mapped(x: Any, places: dict[int, Any]) -> Any:
    children = _children(x)
    if children is None:
        return places[id(x)]
    made = [_mapped(child, places) for _, _, child in children]
    if isinstance(x, dict):
        out = x.copy()
        for (_, key, _), value in zip(children, made, strict=True):
            out[key] = value
        return out
    if isinstance(x, list):
        return type(x)(made)
    if isinstance(x, tuple):
        return type(x)._make(made) if hasattr(type(x), "_make") else tuple(made)
    return replace(x, **{key: value for (_, key, _), value in zip(children, made, strict=True)})


def _children(x: Any) -> list[tuple[str, Any, Any]] | None:
    if isinstance(x, dict):
        return [(f"[{key!r}]", key, value) for key, value in x.items()]
    if isinstance(x, tuple) and hasattr(type(x), "_fields"):
        return [(f".{name}", name, getattr(x, name)) for name in x._fields]
    if type(x) in (list, tuple):
        return [(f"[{i}]", i, value) for i, value in enumerate(x)]
    if is_dataclass(x) and not isinstance(x, type):
        return [(f".{one.name}", one.name, getattr(x, one.name)) for one in fields(x)]
    return None


def is_tree(x: Any) -> bool:
    """Return whether `x` is a container."""
    return _children(x) is not None


def is_tensor(x: Any) -> bool:
    """Return whether a leaf has a tensor's memory."""
    return bool(has_door(x))


def flatten(tree: Any) -> Flat:
    """Return the leaves of a tree, each object once."""
    found: dict[int, Leaf] = {}
    _walk(tree, "", (), (), found)
    return Flat(list(found.values()), tree)


def _walk(x: Any, path: str, keys: Any, inside: tuple[int, ...], found: dict[int, Leaf]) -> None:
    children = _children(x)
    if children is None:
        found.setdefault(id(x), Leaf(x, path, keys))
        return
    if id(x) in inside:
        raise ValueError(f"at {path}: the container contains itself.")
    for step, key, child in children:
        _walk(child, path + step, (*keys, key), (*inside, id(x)), found)


def at(path: str, error: Exception) -> Exception:
    """Return an error of the class of `error` whose message begins with the path."""
    if path:
        error.args = (f"at {path}: {error}",)
    return error
