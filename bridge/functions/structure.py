# SPDX-License-Identifier: Apache-2.0
"""The containers of a tree as a value of their own: compared, hashed, and filled with leaves.

`bridge.trees` knows containers and how to make them. A cache needs this: a structure that
is equal for two calls of the same form and that keeps no tensor alive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from bridge.annotation import Any
from bridge.functions.tensors import library_of
from bridge.trees.nodes import Node, is_tree, node_of

_LEAF = None
_SCALARS = (int, float, bool, complex, str, bytes, type(None))


class _Kind:
    """A container that is not a plain list, tuple or dict: its class, its keys and its context."""

    __slots__ = ("cls", "context", "keys", "node")

    def __init__(self, sample: Any, node: Node) -> None:
        self.cls = type(sample)
        self.keys = tuple([key for _, key in node.steps])
        self.context = _context(sample)
        self.node = node

    def __hash__(self) -> int:
        return hash((self.cls, self.keys, self.context))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Kind)
            and self.cls is other.cls
            and self.keys == other.keys
            and self.context == other.context
        )

    def without_leaves(self) -> _Kind:
        """Return the same, made of a container without the leaves."""
        rebuild = self.node.rebuild
        if not self.context:  # registered nodes are made without the container itself
            made = node_of(rebuild([None] * len(self.keys)))
            rebuild = rebuild if made is None else made.rebuild
        bare: _Kind = object.__new__(_Kind)
        bare.cls, bare.keys, bare.context = self.cls, self.keys, self.context
        bare.node = Node([], self.node.steps, rebuild)
        return bare


def _context(x: Any) -> Any:
    """Return the static fields and the like that a registered container has beside its children."""
    found = []
    torch_nodes = getattr(sys.modules.get("torch.utils._pytree"), "SUPPORTED_NODES", {})
    if type(x) in torch_nodes:
        found.append(torch_nodes[type(x)].flatten_fn(x)[1])
    jax_trees = sys.modules.get("jax.tree_util")
    if jax_trees is not None and not jax_trees.all_leaves((x,)):
        found.append(jax_trees.tree_structure(x, is_leaf=lambda child: child is not x))
    try:
        hash(tuple(found))
    except TypeError:
        return repr(found)
    return tuple(found)


class Structure:
    """The containers of a tree, without its leaves. Equal and hashed by its parts."""

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

    def without_leaves(self) -> Structure:
        """Return the structure without the parts that may keep leaves alive."""
        return Structure(_bare(self.node))


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of `tree` in order, and its structure.

    Raises ValueError: a container contains itself.
    """
    leaves: list[Any] = []
    return leaves, Structure(_structure(tree, leaves, set()))


def _structure(tree: Any, leaves: list[Any], above: set[int]) -> Any:
    cls = type(tree)
    kind: Any
    if cls is tuple or cls is list:
        kind, children = cls, tree
    elif cls is dict:
        kind, children = tuple(tree), list(tree.values())
    elif cls in _SCALARS or library_of(tree) or not is_tree(tree):
        leaves.append(tree)
        return _LEAF
    else:
        node = node_of(tree)
        assert node is not None
        kind, children = _Kind(tree, node), node.children
    if id(tree) in above:
        raise ValueError(f"A {cls.__name__} among the arguments or results contains itself.")
    above.add(id(tree))
    found = kind, tuple([_structure(child, leaves, above) for child in children])
    above.discard(id(tree))
    return found


def _built(structure: Any, leaves: Iterator[Any]) -> Any:
    if structure is _LEAF:
        return next(leaves)
    kind, children = structure
    items = [_built(child, leaves) for child in children]
    if kind is list:
        return items
    if kind is tuple:
        return tuple(items)
    if isinstance(kind, _Kind):
        return kind.node.rebuild(items)
    return dict(zip(kind, items, strict=True))


def _bare(structure: Any) -> Any:
    if structure is _LEAF:
        return _LEAF
    kind, children = structure
    if isinstance(kind, _Kind):
        kind = kind.without_leaves()
    return kind, tuple([_bare(child) for child in children])
