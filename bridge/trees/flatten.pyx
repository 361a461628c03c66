# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""The leaves of a tree with their paths, and a tree of other leaves."""

from bridge.trees.walk cimport Visitor


class Leaf:
    """A leaf: its value, its path as text, and the keys, indices and names of the path."""

    # pyi: value: Any
    # pyi: path: str
    # pyi: keys: tuple[Any, ...]
    __slots__ = ("keys", "path", "value")

    def __init__(self, value: Any, path: str, keys: tuple[Any, ...]) -> None:
        self.value = value
        self.path = path
        self.keys = keys

    def __repr__(self):
        return f"Leaf({self.value!r}, {self.path!r})"


cdef class _Listing(Visitor):
    cdef list found

    cdef object leaf(self, object x):
        self.found.append(Leaf(x, self.path(), self.keys()))
        return x

    cdef object scalar(self, object x):
        return self.leaf(x)

    cdef object kept_leaf(self, object x):
        return self.leaf(x)


cdef class _Replacing(Visitor):
    cdef list values
    cdef Py_ssize_t used

    cdef object leaf(self, object x):
        if self.used >= len(self.values):
            raise ValueError(
                f"The tree has more than {len(self.values)} leaves by now, one for each value.")
        value = self.values[self.used]
        self.used += 1
        return value

    cdef object scalar(self, object x):
        return self.leaf(x)

    cdef object kept_leaf(self, object x):
        return self.leaf(x)


class Flat:
    """A tree and its leaves; see `flatten`."""

    # pyi: tree: Any
    # pyi: leaves: list[Leaf]
    __slots__ = ("leaves", "tree")

    def __init__(self, tree: Any, leaves: list[Leaf]) -> None:
        self.tree = tree
        self.leaves = leaves

    def rebuild(self, values: Iterable[Any]) -> Any:
        """Return a new tree of the same containers with `values`, one for each leaf, in order.

        Raises ValueError: there are fewer or more values than leaves.
        """
        cdef _Replacing visitor = _Replacing()
        visitor.values = list(values)
        if len(visitor.values) != len(self.leaves):
            raise ValueError(
                f"The tree has {len(self.leaves)} leaves, and there are {len(visitor.values)} "
                "values.")
        return visitor.visit(self.tree)


def flatten(tree: Any) -> Flat:
    """Return the Flat of a tree: its ``leaves``, and ``rebuild(values)``.

    Raises ValueError: a container contains itself.

    >>> from bridge.trees import flatten
    >>> flat = flatten({"a": [1, (2.5,)], "b": "text"})
    >>> [(leaf.path, leaf.keys) for leaf in flat.leaves]
    [("['a'][0]", ('a', 0)), ("['a'][1][0]", ('a', 1, 0)), ("['b']", ('b',))]
    >>> flat.rebuild([10, 20, 30])
    {'a': [10, (20,)], 'b': 30}
    """
    cdef _Listing visitor = _Listing()
    visitor.found = []
    visitor.visit(tree)
    return Flat(tree, visitor.found)
