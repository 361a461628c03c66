# SPDX-License-Identifier: Apache-2.0
"""Importers, exporters and protocols that call the bridge: an end, and an error that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge.caffe2 import workspace
from tests.helpers.isolate import isolated


class L:
    """An object of a library, which may hold another."""

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner


class M(L):
    """An object of another library."""


def _feed(x: Any) -> None:
    workspace.FeedBlob("nested", x)


DOORS: list[Callable[[Any], Any]] = [
    bridge.from_dlpack,
    bridge.asarray,
    bridge.to_torch,
    lambda x: bridge.to_numpy(x, copy=False),
    lambda x: bridge.convert(x, "caffe2", copy=True),
    lambda x: bridge.shares_memory(x, np.ones(1)),
    _feed,
]


def refused(x: Any, match: str) -> None:
    """Check that each door refuses `x`, and that it takes others afterwards."""
    for door in DOORS:
        with pytest.raises(BufferError, match=match) as caught:
            door(x)
        assert "recursion" not in str(caught.value)
        with bridge.audit(), pytest.raises(BufferError, match=match):
            door(x)
    assert match in str(bridge.explain(x).note)
    assert bridge.from_dlpack(np.arange(2.0)).tolist() == [0, 1]


@isolated
def test_an_importer_that_returns_another_of_its_class_is_refused() -> None:
    bridge.register("l", types=[L], importer=lambda x: L())
    refused(L(), "importer of l returned another L")


@isolated
def test_two_libraries_that_import_each_others_objects_are_refused() -> None:
    bridge.register("l", types=[L], importer=lambda x: M())
    bridge.register("m", types=[M], importer=lambda x: L())
    refused(L(), "importers of l and m returned another M, another L")


@isolated
def test_two_objects_that_import_each_other_are_refused() -> None:
    x, y = L(), M()
    bridge.register("l", types=[L], importer=lambda x: y)
    bridge.register("m", types=[M], importer=lambda y: x)
    refused(x, "its own code gives it to the bridge again")


@isolated
@pytest.mark.parametrize("number", range(len(DOORS)))
def test_an_importer_that_converts_its_own_object_is_refused(number: int) -> None:
    bridge.register("l", types=[L], importer=DOORS[number])
    refused(L(), "its own code gives it to the bridge again")


@isolated
def test_an_importer_that_converts_ever_new_objects_is_refused() -> None:
    bridge.register("l", types=[L], importer=lambda x: bridge.from_dlpack(L()))
    refused(L(), "its code gives the bridge another")


@isolated
def test_an_importer_may_catch_the_error_of_an_inner_conversion() -> None:
    calls = []

    def importer(x: L) -> Any:
        calls.append(x)
        bridge.explain(L())
        return np.arange(2.0)

    bridge.register("l", types=[L], importer=importer)
    with bridge.audit() as log:
        assert bridge.from_dlpack(L()).tolist() == [0, 1]
    assert log.copied_bytes == 16
    assert len(calls) < 200  # not twice as many at each level


@isolated
def test_an_importer_may_return_an_object_of_another_importer() -> None:
    array = np.arange(2.0)
    bridge.register("l", types=[L], importer=lambda x: x.inner)
    bridge.register("m", types=[M], importer=lambda x: x.inner)
    x = L(M(L(array)))
    for door in DOORS[:4]:
        assert bridge.shares_memory(door(x), array)
    assert bridge.from_dlpack(x, copy=False).tolist() == [0, 1]
    assert not bridge.shares_memory(bridge.to_numpy(x, copy=True), array)


@isolated
def test_an_importer_may_convert_parts() -> None:
    bridge.register(
        "l",
        types=[L],
        importer=lambda x: np.concatenate([np.atleast_1d(bridge.to_numpy(p)) for p in x.inner]),
    )
    parts = [L([np.arange(2.0), L([np.ones(1)])]) for _ in range(100)]
    assert bridge.from_dlpack(L(parts)).tolist() == [0, 1, 1] * 100


@isolated
def test_the_last_of_a_chain_may_be_left_to_its_own_protocols() -> None:
    class Doors(M):
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.arange(2.0)

    bridge.register("l", types=[L], importer=lambda x: x.inner)
    bridge.register("m", types=[M], importer=lambda x: x)
    assert bridge.from_dlpack(L(Doors())).tolist() == [0, 1]


def _protocols() -> dict[str, dict[str, Any]]:
    on_host = {"__dlpack_device__": lambda self: (1, 0)}
    take = bridge.from_dlpack
    return {
        "dlpack": {"__dlpack__": lambda self, **k: take(self).__dlpack__(**k), **on_host},
        "device": {
            "__dlpack__": lambda self, **k: None,
            "__dlpack_device__": lambda self: take(self).__dlpack_device__(),
        },
        "array": {"__array__": lambda self, dtype=None, copy=None: bridge.to_numpy(self)},
        "interface": {"__array_interface__": property(lambda self: take(self).__array_interface__)},
        "struct": {"__array_struct__": property(lambda self: take(self).__array_interface__)},
        "cuda": {"__cuda_array_interface__": property(lambda self: take(self).data_ptr())},
        "to_dlpack": {"to_dlpack": lambda self: take(self).__dlpack__()},
        "arrow": {"__arrow_c_array__": lambda self, s=None: take(self).__arrow_c_array__()},
        "stream": {"__arrow_c_stream__": lambda self, s=None: take(self).__arrow_c_array__()},
    }


@pytest.mark.parametrize("name", _protocols())
def test_a_protocol_that_converts_its_own_object_is_refused(name: str) -> None:
    x = type("Recursive", (), _protocols()[name])()
    refused(x, "its own code gives it to the bridge again")


@pytest.mark.parametrize(
    "attributes",
    [
        {"__dlpack__": lambda self, **k: self, "__dlpack_device__": lambda self: (1, 0)},
        {"__array__": lambda self, dtype=None, copy=None: self},
        {"__array_interface__": property(lambda self: self)},
        {
            "__array_interface__": property(
                lambda self: {"version": 3, "shape": (1,), "typestr": "|u1", "data": self}
            )
        },
        {"to_dlpack": lambda self: self},
        {"__arrow_c_array__": lambda self, schema=None: self},
    ],
)
def test_a_protocol_that_returns_its_own_object_is_refused(attributes: dict[str, Any]) -> None:
    refused(type("Own", (), attributes)(), "Own")


def test_attributes_that_convert_their_own_object_are_refused() -> None:
    class Asks:
        @property
        def data(self) -> Any:
            return bridge.asarray(self)

        @property
        def values(self) -> Any:
            return bridge.asarray(Asks())

        def __getattr__(self, name: str) -> Any:
            return bridge.from_dlpack(self)

    for door in (*DOORS, bridge.explain):
        with pytest.raises(TypeError, match="no tensor's memory"):
            door(Asks())


@isolated
def test_exporters_that_convert_for_ever_are_refused() -> None:
    def times_two(x: Any) -> L:
        return L(bridge.convert(x.inner if isinstance(x, L) else x, "numpy"))

    array = np.arange(2.0)
    bridge.register("l", exporter=lambda t: bridge.convert(t, "l"))
    with pytest.raises(BufferError, match=r"exporter of l called convert\(x, 'l'\)"):
        bridge.convert(array, "l")
    bridge.register("l", exporter=lambda t: bridge.convert(t[:], "l"))
    with pytest.raises(BufferError, match=r"exporter of l called .* 32 times"):
        bridge.convert(array, "l")
    bridge.register("l", exporter=lambda t: bridge.convert(t, "m"))
    bridge.register("m", exporter=lambda t: bridge.convert(t, "l"))
    with pytest.raises(BufferError, match="exporter of l and m called"):
        bridge.convert(array, "l")
    bridge.register("m", exporter=times_two)
    assert bridge.shares_memory(bridge.convert(array, "l").inner, array)
    bridge.register(
        "m", exporter=lambda t: t.item() if t.dim() == 0 else [bridge.convert(r, "m") for r in t]
    )
    assert bridge.convert(np.ones((2, 2)), "m") == [[1, 1], [1, 1]]


@isolated
def test_an_exporter_may_return_an_at_tensor() -> None:
    bridge.register("l", types=[L], importer=lambda x: x.inner, exporter=lambda t: t)
    array = np.arange(2.0)
    for copy in (None, False):
        assert bridge.shares_memory(bridge.convert(array, "l", copy=copy), array)
    assert not bridge.shares_memory(bridge.convert(array, "l", copy=True), array)


@isolated
def test_an_export_works_where_the_importer_has_no_end() -> None:
    bridge.register("l", types=[L], importer=lambda x: L(), exporter=L)
    assert type(bridge.convert(np.ones(1), "l")) is L
    with pytest.raises(BufferError, match="l cannot share"):
        bridge.convert(np.ones(1), "l", copy=False)


class Passes:
    """An object whose DLPack tensor is another's."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()


@isolated
@pytest.mark.parametrize("number", range(3))
def test_owners_of_owners_are_freed_without_recursion(number: int) -> None:
    wrap = [Passes, np.from_dlpack, bridge.at.Tensor.__dlpack__][number]
    freed: list[int] = []
    x = bridge.at.from_blob(bytearray(8), [1], options="float64", deleter=freed.append)
    for _ in range(50_000):
        x = bridge.from_dlpack(wrap(x))
    assert x.tolist() == [0] and not freed
    del x
    assert len(freed) == 1
