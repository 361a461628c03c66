# SPDX-License-Identifier: Apache-2.0
"""Every door takes a tree: what a tensor becomes alone, each leaf becomes there."""

from __future__ import annotations

import gc
import weakref
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from bridge.c10 import EnforceNotMet

jax = pytest.importorskip("jax")
jnp = jax.numpy
tf = pytest.importorskip("tensorflow")

Door = Callable[..., Any]

# name -> door, class of its results
DOORS: dict[str, tuple[Door, type]] = {
    "to_torch": (bridge.to_torch, torch.Tensor),
    "to_numpy": (bridge.to_numpy, np.ndarray),
    "to_jax": (bridge.to_jax, jax.Array),
    "to_tensorflow": (bridge.to_tensorflow, tf.Tensor),
    **{
        f"convert {name}": (lambda x, name=name, **options: bridge.convert(x, name, **options), cls)
        for name, cls in (
            ("torch", torch.Tensor),
            ("numpy", np.ndarray),
            ("jax", jax.Array),
            ("tensorflow", tf.Tensor),
            ("at", at.Tensor),
            ("caffe2", caffe2.Tensor),
        )
    },
}


class Batch(NamedTuple):
    image: Any
    label: Any


@dataclass(frozen=True)
class Layer:
    weight: Any
    name: str = "linear"


def refused_by(cls: type) -> Any:
    """Return a tensor that no door to the class takes."""
    return torch.zeros(2, device="meta") if cls is np.ndarray else np.array(["x", None], object)


def sources() -> dict[str, Any]:
    """Return a tensor of ones of each library."""
    return {
        "numpy": np.ones(3, np.float32),
        "torch": torch.ones(3),
        "jax": jnp.ones(3),
        "tensorflow": tf.ones(3),
        "at": at.ones(3),
        "caffe2": caffe2.Tensor([3], [1.0, 1.0, 1.0], "float32"),
    }


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_converts_leaves_of_all_libraries(door: Door, cls: type) -> None:
    tree = {"all": sources(), "layer": [Layer(np.ones(3, np.float32))]}
    out = door(tree)
    assert list(out) == ["all", "layer"]
    assert list(out["all"]) == list(sources())
    assert type(out["layer"][0]) is Layer
    for leaf in (*out["all"].values(), out["layer"][0].weight):
        assert isinstance(leaf, cls)
        assert bridge.to_numpy(leaf).tolist() == [1, 1, 1]


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_keeps_containers_and_their_order(door: Door, cls: type) -> None:
    a, b = np.zeros(2, np.float32), np.ones(2, np.float32)
    factory = defaultdict(list, z=a, a=b)
    out = door([OrderedDict(z=a, a=b), factory, Batch(a, (b,)), Layer(a), (), {}])
    assert [type(x) for x in out] == [OrderedDict, defaultdict, Batch, Layer, tuple, dict]
    assert list(out[0]) == list(out[1]) == ["z", "a"]
    assert out[1].default_factory is list
    assert isinstance(out[2].label[0], cls)
    assert out[3].name == "linear"


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_objects_that_are_not_tensors_stay_the_same_objects(door: Door, cls: type) -> None:
    others = [
        *(5, 2.5, 1j, True, None, "text", b"ab", bytearray(2), memoryview(b"ab"), array("d", [1])),
        *(np.float32(1), np.int64(2), np.bool_(True), np.datetime64("2020-01-01")),
        *(object(), {1, 2}, frozenset({3}), deque([1]), SimpleNamespace(a=1), range(3), len),
        *(np.ndarray, np.dtype("float32"), torch.float32, torch.device("cpu"), slice(1, 2)),
        *(jax.ShapeDtypeStruct((2,), "float32"), tf.TensorShape([2]), tf.float32),
    ]
    out = door({"others": others, "tensor": np.zeros(2, np.float32)})
    assert all(new is old for new, old in zip(out["others"], others, strict=True))
    assert isinstance(out["tensor"], cls)


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_the_same_tensor_comes_out_as_the_same_object(door: Door, cls: type) -> None:
    weight = np.ones((2, 2), np.float32)
    shared = [weight]
    out = door({"embed": weight, "head": (weight, shared), "again": shared}, copy=True)
    assert out["embed"] is out["head"][0] is out["again"][0]
    assert out["again"] is out["head"][1]


def test_leaves_that_overlap_still_do() -> None:
    base = np.zeros(10, np.float32)
    out = bridge.to_torch({"first": base[:6], "last": base[4:]})
    out["first"][5] = 7
    assert out["last"][1] == base[5] == 7


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_an_error_names_the_leaf_and_has_the_class_of_one_tensor(door: Door, cls: type) -> None:
    bad = refused_by(cls)
    with pytest.raises(BufferError) as alone:
        door(bad)
    tree = {"model": {"layers": [Layer(np.zeros(2, np.float32)), Layer(bad)]}}
    with pytest.raises(BufferError) as raised:
        door(tree)
    assert type(raised.value) is type(alone.value)
    assert str(raised.value) == f"at ['model']['layers'][1].weight: {alone.value}"
    grad = torch.zeros(2, requires_grad=True)
    if cls is not torch.Tensor:
        with pytest.raises(BufferError, match=r"^at \[0\]\['w'\]: .*detach"):
            door([{"w": grad}])


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_nothing_is_left_of_a_tree_that_fails(door: Door, cls: type) -> None:
    capsule = torch.ones(3).__dlpack__()
    good = np.zeros(3, np.float32)
    tree = {"capsule": capsule, "good": good, "bad": refused_by(cls)}
    with bridge.audit() as log, pytest.raises(BufferError, match=r"at \['bad'\]"):
        door(tree)
    assert log.records == []
    assert list(tree) == ["capsule", "good", "bad"]
    assert tree["good"] is good
    assert '"dltensor' in repr(capsule)  # it was not used up
    out = door({"capsule": capsule, "again": [capsule], "good": good})
    assert out["capsule"] is out["again"][0]
    assert bridge.to_numpy(out["capsule"]).tolist() == [1, 1, 1]


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_a_container_that_contains_itself_is_refused(door: Door, cls: type) -> None:
    tree: dict[str, Any] = {"a": np.zeros(2, np.float32)}
    tree["again"] = [tree]
    with pytest.raises(ValueError, match=r"at \['again'\]\[0\]: the dict contains itself"):
        door(tree)


@pytest.mark.parametrize(("door", "cls"), DOORS.values(), ids=DOORS)
def test_options_hold_for_all_leaves(door: Door, cls: type) -> None:
    arrays = [np.zeros(64, np.float32), np.ones(64, np.float32)]
    out = door(arrays, copy=True)
    assert not any(bridge.shares_memory(new, old) for new, old in zip(out, arrays, strict=True))
    lazy = torch.zeros(2, dtype=torch.complex64).conj().imag
    if cls is not torch.Tensor:
        with pytest.raises(BufferError, match=r"^at \[1\]: "):
            door([None, lazy], copy=False)
    with pytest.raises(TypeError, match="copy is True, False or None"):
        door(arrays, copy=1)


def test_writable_and_readonly_hold_for_all_leaves() -> None:
    tree = [jnp.zeros(16), (jnp.ones(16),)]
    for option in ("writable", "readonly"):
        out = bridge.to_torch(tree, **{option: True})
        assert bridge.shares_memory(out[0], tree[0])
        assert bridge.shares_memory(out[1][0], tree[1][0])
    with pytest.raises(EnforceNotMet):
        out[1][0].add_(1)
    same = bridge.convert(tree, "torch", readonly=True)
    assert bridge.shares_memory(same[0], tree[0])
    with pytest.raises(TypeError, match="not both"):
        bridge.to_torch(tree, writable=True, readonly=True)


def test_an_audit_counts_each_tensor_once() -> None:
    a, b = np.zeros(4, np.float32), np.ones(2, ">f4")
    with bridge.audit() as log:
        bridge.to_torch({"a": a, "again": a, "b": b, "number": 5, "kept": b"ab"})
    assert [(record.route, record.copied, record.nbytes) for record in log.records] == [
        ("to_torch: numpy.ndarray -> torch.Tensor", False, 16),
        ("to_torch: numpy.ndarray -> torch.Tensor", True, 8),
    ]
    with bridge.audit() as log:
        bridge.convert([a], "jax")
        bridge.convert([a], like=torch.zeros(1))
    assert [record.route for record in log.records] == [
        "convert: numpy.ndarray -> jax",
        "convert: numpy.ndarray -> torch",
    ]


def test_no_copy_names_the_leaf() -> None:
    with bridge.no_copy(), pytest.raises(BufferError, match=r"at \['b'\]: .* would copy 8 bytes"):
        bridge.to_torch({"a": np.zeros(2), "b": np.ones(2, ">f4")})


def test_a_tree_without_tensors_is_copied() -> None:
    tree: dict[str, Any] = {"a": [1, "x"], "b": {}}
    out = bridge.to_numpy(tree)
    assert out == tree
    assert out["a"] is not tree["a"]


def test_a_leaf_alone_is_taken_or_refused_as_without_trees() -> None:
    with pytest.raises(TypeError):
        bridge.to_torch(5)
    with pytest.raises(TypeError):
        bridge.to_torch(deque([np.zeros(2)]))
    assert bridge.to_torch(bytearray(b"ab")).tolist() == [97, 98]
    assert bridge.to_numpy(np.float32(2)).tolist() == 2
    with pytest.raises(TypeError):
        bridge.from_dlpack([np.zeros(2)])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="it converts to torch"):
        bridge.convert([], "tarch")


def test_large_trees_are_converted() -> None:
    tree = {f"layer{i}": np.full(2, i, np.float32) for i in range(10_000)}
    out = bridge.to_torch(tree)
    assert list(out) == list(tree)
    assert out["layer9999"].tolist() == [9999, 9999]


def test_nothing_of_a_tree_is_kept() -> None:
    class Own(dict[str, Any]):
        pass

    tree = Own(a=[at.zeros(2)])
    seen = [weakref.ref(tree), weakref.ref(tree["a"][0])]
    out = bridge.to_numpy(tree)
    del tree, out
    gc.collect()
    assert [reference() for reference in seen] == [None, None]


def test_a_registered_library_is_a_leaf_and_a_target() -> None:
    @dataclass
    class Signal:
        samples: Any

    bridge.register(
        "signal-tree", types=[Signal], importer=lambda x: x.samples, exporter=lambda t: Signal(t)
    )
    out = bridge.convert({"a": np.zeros(2, np.float32)}, "signal-tree")
    assert isinstance(out["a"], Signal)
    assert isinstance(bridge.to_numpy(out)["a"], np.ndarray)


def test_sizes_stay_the_same_object() -> None:
    sizes = torch.Size([2, 3])
    assert bridge.to_numpy({"sizes": sizes, "x": torch.ones(2)})["sizes"] is sizes


def test_what_is_no_tree_is_not_said_to_be_one() -> None:
    with pytest.raises(TypeError, match=r"Give one, as x\['a'\]\.$"):
        bridge.to_torch(MappingProxyType({"a": torch.ones(2)}))
