# SPDX-License-Identifier: Apache-2.0
"""The containers of a tree as a key."""

from __future__ import annotations

import gc
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from typing import Any

import torch

from bridge.functions.structure import flatten

Point = namedtuple("Point", "x y")


@dataclass
class Batch:
    """A container whose fields are leaves."""

    image: Any


def test_structures_are_equal_where_their_containers_are() -> None:
    def trees(leaf: Any) -> list[Any]:
        return [
            [leaf],
            (leaf,),
            {"a": leaf},
            {"b": leaf},
            OrderedDict(a=leaf),
            defaultdict(list, a=leaf),
            Point(leaf, 1),
            Batch(leaf),
            [[leaf], []],
            [leaf, leaf],
            {},
            [],
        ]

    first = [flatten(tree)[1] for tree in trees(torch.ones(1))]
    second = [flatten(tree)[1] for tree in trees("leaf")]
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            assert (one == other) == (i == j)
            assert i != j or hash(one) == hash(other)


def test_leaves_are_put_back() -> None:
    tree = {"p": Point(1, [2, (3,)]), "b": Batch(OrderedDict(z=4, a=5))}
    leaves, structure = flatten(tree)
    assert leaves == [1, 2, 3, 4, 5]
    assert structure.rebuild(leaves) == tree
    assert structure.without_leaves() == structure
    assert structure.without_leaves().rebuild(leaves) == tree


def test_a_structure_without_leaves_keeps_none_alive() -> None:
    leaf = torch.ones(1)
    structure = flatten(OrderedDict(a=Batch(Point(leaf, 1))))[1].without_leaves()
    alive = weakref.ref(leaf)
    del leaf
    gc.collect()
    assert alive() is None
    assert structure.rebuild([1, 2])["a"].image == Point(1, 2)
