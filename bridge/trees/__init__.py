# SPDX-License-Identifier: Apache-2.0
"""Trees: nested containers whose leaves are tensors, such as batches and state dicts.

A container is a ``dict`` or an object of a class derived from it, ``list`` or ``tuple`` and classes
derived from them (named tuples among them), a dataclass instance, or a node that is registered
with ``torch.utils._pytree`` or ``jax.tree_util``; these are asked only where they are loaded. A
registration wins over a class's being a dataclass or derived from dict. Everything else is a leaf:
``UserDict``, ``deque`` and ``SimpleNamespace`` too, and a dataclass or a subclass of dict, list or
tuple that has a door to a tensor's memory (such as ``__dlpack__``) and is not registered.

Functions for other parts of the bridge::

    flat = flatten(tree)
    flat.leaves  # list of Leaf, in the order of the tree
    leaf.value  # the object
    leaf.path  # "['model']['layers'][0].weight"; "" if the tree is one leaf
    leaf.keys  # ("model", "layers", 0, "weight"): keys of dicts, indices, fields
    flat.rebuild(new_values)  # a tree of the same containers with one value for each leaf
    is_tree(x)  # whether `x` is a container
    is_tensor(x)  # whether a leaf has a tensor's memory, so that a door takes it
    keeps(x)  # whether a leaf stays as it is in a tree: numbers, bytes, arrays …

One object is one leaf: a leaf that occurs again is listed once, under its first path, and
`rebuild` puts its value everywhere; a container that occurs again is one object again. Numbers,
strings and None are listed wherever they occur. A container that contains itself is a ValueError,
more than 1,000 of them in each other are a RecursionError.
`rebuild` makes new containers and changes none. It may be called with any values, also several
times, as long as the tree does not change. `at(path, error)` is an error with the path of the leaf.
"""

from __future__ import annotations

from bridge.trees.flatten import Flat, Leaf, flatten
from bridge.trees.leaf_errors import at
from bridge.trees.nodes import is_tensor, is_tree, keeps

__all__ = ["Flat", "Leaf", "at", "flatten", "is_tensor", "is_tree", "keeps"]
