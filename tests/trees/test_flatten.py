# SPDX-License-Identifier: Apache-2.0
"""A tree is listed with paths, in its order, and rebuilt of the same containers."""

from __future__ import annotations

import subprocess
import sys
import time
from array import array
from collections import (
    ChainMap,
    Counter,
    OrderedDict,
    UserDict,
    UserList,
    defaultdict,
    deque,
    namedtuple,
)
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch.utils import _pytree

import bridge
from bridge.trees import flatten, is_tensor, is_tree, keeps

jax = pytest.importorskip("jax")
jnp = jax.numpy

Pair = namedtuple("Pair", ["first", "second"])


class Typed(NamedTuple):
    weight: Any
    bias: Any = None


class SubTuple(tuple):
    pass


class SubList(list):
    note = "of the class"


class SubDict(dict):
    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("read-only to its users")


class WithArguments(dict):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


class AttributeDict(dict):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.__dict__ = self


@dataclass
class Layer:
    weight: Any
    bias: Any = None


@dataclass(frozen=True)
class Frozen:
    weight: Any
    note: str = "n"
    derived: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        if not isinstance(self.weight, np.ndarray):
            raise TypeError("weights are arrays of NumPy")


@dataclass(frozen=True, slots=True)
class Slotted:
    weight: Any
    bias: Any = None


class Registered:
    def __init__(self, weight: Any, static: Any) -> None:
        self.weight, self.static = weight, static


_pytree.register_pytree_node(
    Registered,
    lambda x: ([x.weight], x.static),
    lambda children, static: Registered(next(iter(children)), static),
    flatten_with_keys_fn=lambda x: (
        [(_pytree.GetAttrKey("weight"), x.weight)],
        x.static,
    ),
)


@jax.tree_util.register_dataclass
@dataclass
class OfJax:
    weight: Any
    note: str = field(metadata={"static": True}, default="n")


A, B = np.zeros(2), np.ones(3)

# container, paths of A and B in it
CONTAINERS = {
    "dict": ({"z": A, "a": B}, ["['z']", "['a']"]),
    "keys": ({1: A, ("x", 2): B}, ["[1]", "[('x', 2)]"]),
    "list": ([A, B], ["[0]", "[1]"]),
    "tuple": ((A, B), ["[0]", "[1]"]),
    "OrderedDict": (OrderedDict([("z", A), ("a", B)]), ["['z']", "['a']"]),
    "defaultdict": (defaultdict(list, z=A, a=B), ["['z']", "['a']"]),
    "Counter": (Counter({"z": A, "a": B}), ["['z']", "['a']"]),
    "SubDict": (SubDict(z=A, a=B), ["['z']", "['a']"]),
    "AttributeDict": (AttributeDict(z=A, a=B), ["['z']", "['a']"]),
    "SubList": (SubList([A, B]), ["[0]", "[1]"]),
    "SubTuple": (SubTuple([A, B]), ["[0]", "[1]"]),
    "namedtuple": (Pair(A, B), [".first", ".second"]),
    "NamedTuple": (Typed(A, B), [".weight", ".bias"]),
    "dataclass": (Layer(A, B), [".weight", ".bias"]),
    "slots": (Slotted(A, B), [".weight", ".bias"]),
    "nested": ({"m": [Layer(A, (B,))]}, ["['m'][0].weight", "['m'][0].bias[0]"]),
    "of torch": ([Registered(A, "s"), B], ["[0].weight", "[1]"]),
    "of JAX": ([OfJax(A), B], ["[0].weight", "[1]"]),
}


@pytest.mark.parametrize(("tree", "paths"), CONTAINERS.values(), ids=CONTAINERS)
def test_lists_leaves_in_order_and_rebuilds_the_container(tree: Any, paths: list[str]) -> None:
    flat = flatten(tree)
    arrays = [leaf for leaf in flat.leaves if isinstance(leaf.value, np.ndarray)]
    assert [leaf.path for leaf in arrays] == paths
    assert [leaf.value is x for leaf, x in zip(arrays, (A, B), strict=False)].count(False) == 0
    again = flat.rebuild([f"new {leaf.path}" for leaf in flat.leaves])
    assert type(again) is type(tree)
    assert [leaf.value for leaf in flatten(again).leaves if str(leaf.value).startswith("new")] == [
        f"new {leaf.path}" for leaf in flat.leaves
    ]
    assert [leaf.path for leaf in flatten(again).leaves] == [leaf.path for leaf in flat.leaves]
    assert flatten(tree).leaves[0].value is flat.leaves[0].value


def test_leaves_have_the_keys_of_their_containers() -> None:
    tree = {"model": {"layers": [Layer(A)], 3: Pair(B, None)}, "jax": OfJax(B)}
    assert [leaf.keys for leaf in flatten(tree).leaves] == [
        ("model", "layers", 0, "weight"),
        ("model", "layers", 0, "bias"),
        ("model", 3, "first"),
        ("model", 3, "second"),
        # (the same object as before is one leaf)
    ]


def test_an_object_that_occurs_again_is_one_leaf() -> None:
    shared = [A, B]
    flat = flatten({"a": shared, "b": shared, "c": (A, 1, 1)})
    assert [leaf.path for leaf in flat.leaves] == [
        "['a'][0]",
        "['a'][1]",
        "['c'][1]",
        "['c'][2]",
    ]
    again = flat.rebuild([object() for _ in flat.leaves])
    assert again["a"] is again["b"]
    assert again["a"][0] is again["c"][0]
    assert again["c"][1] is not again["c"][2]


def test_an_ordered_dict_keeps_the_order_of_its_moved_items() -> None:
    tree = OrderedDict(a=A, b=B)
    tree.move_to_end("a")
    again = flatten(tree).rebuild(["first", "second"])
    assert list(again.items()) == [("b", "first"), ("a", "second")]
    again.move_to_end("b")
    assert list(again) == ["a", "b"]


def test_attributes_beside_the_items_are_kept() -> None:
    tree = WithArguments("x")
    tree["a"] = A
    again = flatten(tree).rebuild([B])
    assert (again.name, again["a"] is B) == ("x", True)
    factory = flatten(defaultdict(list, a=A)).rebuild([B])
    assert factory["new"] == []
    attributes = flatten(AttributeDict(a=A)).rebuild([B])
    assert attributes.a is B
    attributes.other = 1
    assert attributes["other"] == 1


def test_attributes_that_mirror_items_follow_them() -> None:
    tree = SubDict(logits=A)
    tree.logits = A  # type: ignore[attr-defined]
    again = flatten(tree).rebuild([B])
    assert again.logits is B


def test_a_frozen_dataclass_is_rebuilt_without_its_constructor() -> None:
    tree = Frozen(A)
    again = flatten(tree).rebuild(["text", "note", "derived"])
    assert (again.weight, again.note, again.derived) == ("text", "note", "derived")
    assert tree.weight is A


def test_fields_that_jax_calls_static_are_not_leaves() -> None:
    flat = flatten(OfJax(A, note="static"))
    assert [leaf.path for leaf in flat.leaves] == [".weight"]
    assert flat.rebuild([B]).note == "static"


LEAVES = {
    "UserDict": UserDict(a=A),
    "UserList": UserList([A]),
    "deque": deque([A]),
    "SimpleNamespace": SimpleNamespace(a=A),
    "ChainMap": ChainMap({"a": A}),
    "mappingproxy": MappingProxyType({"a": A}),
    "set": {1, 2},
    "range": range(3),
    "None": None,
    "function": len,
    "class": np.ndarray,
}


@pytest.mark.parametrize("leaf", LEAVES.values(), ids=LEAVES)
def test_everything_else_is_a_leaf(leaf: Any) -> None:
    assert not is_tree(leaf)
    assert not is_tensor(leaf)
    assert [found.value is leaf for found in flatten([leaf]).leaves] == [True]


def test_objects_with_memory_are_leaves() -> None:
    for x in (b"ab", bytearray(2), memoryview(b"ab"), array("d", [1]), np.float32(1)):
        assert keeps(x)
        assert is_tensor(x)
        assert not is_tree(x)
    buffer = bytearray(2)
    assert len(flatten([buffer, buffer]).leaves) == 1


def test_tensors_are_leaves() -> None:
    for x in (A, torch.zeros(2), jnp.zeros(2), bridge.at.zeros(2), np.ma.array([1.0])):
        assert is_tensor(x)
        assert not is_tree(x)


def test_a_dataclass_with_a_door_is_a_leaf() -> None:
    @dataclass
    class Image:
        pixels: Any

        @property
        def __array_interface__(self) -> Any:
            return self.pixels.__array_interface__

    assert not is_tree(Image(A))
    assert is_tensor(Image(A))
    assert is_tree(Layer(A))


def test_a_container_that_contains_itself_is_refused() -> None:
    direct: list[Any] = []
    direct.append(direct)
    with pytest.raises(ValueError, match=r"^at \[0\]: the list contains itself"):
        flatten(direct)
    inner: dict[str, Any] = {}
    inner["layer"] = Layer((inner,))
    with pytest.raises(ValueError, match=r"at \['a'\]\['layer'\]\.weight\[0\]: the dict contains"):
        flatten({"a": inner})


def test_a_tree_that_is_too_deep_is_an_error() -> None:
    tree: Any = A
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(RecursionError):
        flatten(tree)


def test_one_leaf_alone_is_a_tree_without_a_path() -> None:
    flat = flatten(A)
    assert [(leaf.value is A, leaf.path, leaf.keys) for leaf in flat.leaves] == [(True, "", ())]
    assert flat.rebuild([B]) is B


def test_as_many_values_as_leaves_are_needed() -> None:
    with pytest.raises(ValueError, match="The tree has 2 leaves, and there are 1 values"):
        flatten([A, B]).rebuild([A])


def test_many_leaves_are_listed_and_rebuilt() -> None:
    tree = {i: [np.zeros(1), i] for i in range(10_000)}
    flat = flatten(tree)
    assert len(flat.leaves) == 20_000
    assert flat.leaves[-1].path == "[9999][1]"
    assert flat.rebuild(range(20_000))[9999] == [19_998, 19_999]


def test_time_and_C_structures_stay() -> None:
    now = time.gmtime()
    assert flatten((now, torch.Size([2, 3]))).rebuild(
        [leaf.value for leaf in flatten((now, torch.Size([2, 3]))).leaves]
    ) == (now, torch.Size([2, 3]))


def test_no_framework_is_imported() -> None:
    program = (
        "import sys; from bridge.trees import flatten; flatten({'a': [1, (2,)]}).rebuild([3, 4])\n"
        "print([name for name in ('torch', 'jax', 'numpy', 'dataclasses') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
