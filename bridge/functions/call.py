# SPDX-License-Identifier: Apache-2.0
"""A call whose tensors are taken out of its arguments, and a result whose tensors are."""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.functions.structure import flatten
from bridge.functions.tensors import library_of


class Call:
    """The arguments of one call: a structure, the other leaves, and the place of each tensor.

    tensors: the caller's, each once. libraries: of each. places: for each leaf the index of
    its tensor, or -1.
    """

    __slots__ = ("leaves", "libraries", "places", "structure", "tensors")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        leaves, self.structure = flatten((args, kwargs))
        self.tensors: list[Any] = []
        self.libraries: list[str] = []
        self.leaves: list[Any] = []
        places = []
        known: dict[int, int] = {}
        for leaf in leaves:
            library = library_of(leaf)
            if not library:
                places.append(-1)
                self.leaves.append(leaf)
                continue
            place = known.get(id(leaf))
            if place is None:
                place = known[id(leaf)] = len(self.tensors)
                self.tensors.append(leaf)
                self.libraries.append(library)
            places.append(place)
            self.leaves.append(None)
        self.places = tuple(places)

    def arguments(self, tensors: list[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and the keyword arguments with `tensors` in the tensors' places."""
        leaves = [
            leaf if place < 0 else tensors[place]
            for leaf, place in zip(self.leaves, self.places, strict=True)
        ]
        args, kwargs = self.structure.rebuild(leaves)
        return args, kwargs

    def static(self) -> Static:
        """Return the arguments without the tensors, as a key."""
        return Static(self.structure, self.places, self.leaves)

    def bare(self) -> Call:
        """Return the call without the caller's tensors, to be kept."""
        bare = object.__new__(Call)
        bare.structure, bare.leaves, bare.places = self.structure, self.leaves, self.places
        bare.tensors, bare.libraries = [], self.libraries
        return bare


class Static:
    """The arguments of a call without its tensors: equal if a traced function would be the same."""

    __slots__ = ("hashed", "leaves", "places", "structure", "types")

    def __init__(self, structure: Any, places: tuple[int, ...], leaves: list[Any]) -> None:
        self.structure = structure.without_leaves()
        self.places = places
        self.leaves = leaves
        self.types = tuple([type(leaf) for leaf in leaves])
        self.hashed: int | None = None

    def __hash__(self) -> int:
        if self.hashed is None:
            self.hashed = hash((self.structure, self.places, tuple(self.leaves)))
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Static)
            and self.places == other.places
            and self.types == other.types
            and self.structure == other.structure
            and all(map(_is_same, self.leaves, other.leaves))
        )


def _is_same(one: Any, other: Any) -> bool:
    if type(one) is float or type(one) is complex:
        return repr(one) == repr(other)  # tells 0.0 from -0.0, and nan is nan
    return one is other or bool(one == other)


class Results:
    """The results of a function: a structure, the other leaves, and the place of each tensor."""

    __slots__ = ("leaves", "places", "structure")

    def __init__(self, structure: Any, leaves: list[Any], places: list[int]) -> None:
        self.structure = structure
        self.leaves = leaves
        self.places = places

    @classmethod
    def of(
        cls, result: Any, is_tensor: Callable[[Any], bool] | None = None
    ) -> tuple[Results, list[Any]]:
        """Return the structure of `result` without its tensors, and these, each once."""
        leaves, structure = flatten(result)
        is_tensor = is_tensor or is_result
        tensors: list[Any] = []
        known: dict[int, int] = {}
        places = []
        for number, leaf in enumerate(leaves):
            if not is_tensor(leaf):
                places.append(-1)
                continue
            place = known.setdefault(id(leaf), len(tensors))
            if place == len(tensors):
                tensors.append(leaf)
            places.append(place)
            leaves[number] = None
        return cls(structure, leaves, places), tensors

    def rebuild(self, tensors: list[Any]) -> Any:
        """Return the result with other tensors."""
        return self.structure.rebuild(
            [
                leaf if place < 0 else tensors[place]
                for leaf, place in zip(self.leaves, self.places, strict=True)
            ]
        )

    def difference(self, other: Results) -> str:
        """Return how `other`, of another run, differs from this one; "" if it does not."""
        if self.structure != other.structure or self.places != other.places:
            return "another structure"
        for mine, its in zip(self.leaves, other.leaves, strict=True):
            if mine is not its and (type(mine) is not type(its) or mine != its):
                return f"{its!r} in place of {mine!r}"
        return ""


def is_result(leaf: Any) -> bool:
    """Return whether a leaf of a result is a tensor: NumPy's scalars are."""
    if library_of(leaf):
        return True
    cls = type(leaf)
    return cls.__module__ == "numpy" and hasattr(cls, "__array_interface__")
