# SPDX-License-Identifier: Apache-2.0
"""Each kind of object of each library, of every type and layout, in by every door.

    python -m pytest tests/libraries/test_objects.py -k polars

What an object holds, its library says itself. A door gives just that, shared or copied as all
records say, or an error of one line.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge.caffe2 import workspace
from tests.libraries.objects import LAYOUTS, LIBRARIES, READERS, TYPES, Kind, kinds, numbers

pytestmark = [
    pytest.mark.usefixtures("fresh_workspace"),
    pytest.mark.filterwarnings("ignore"),  # of the libraries, when they make their objects
]


def without_copies(x: Any) -> Any:
    with bridge.no_copy():
        return bridge.from_dlpack(x)


def fed(x: Any) -> Any:
    workspace.FeedBlob("x", x)
    return workspace.FetchBlob("x")


SHARING: dict[str, Callable[[Any], Any]] = {
    "copy=False": lambda x: bridge.from_dlpack(x, copy=False),
    "no_copy": without_copies,
}
DOORS: dict[str, Callable[[Any], Any]] = {
    "copy=True": lambda x: bridge.from_dlpack(x, copy=True),
    "asarray": bridge.asarray,
    "to_torch": bridge.to_torch,
    "to_numpy": bridge.to_numpy,
    "at": lambda x: bridge.convert(x, "at"),
    "caffe2": lambda x: bridge.convert(x, "caffe2"),
    "FeedBlob": fed,
}
# Types that go through all doors; each door takes all that `from_dlpack` takes.
EVERYWHERE = ("bool", "int16", "float32")


def values_of(x: Any) -> tuple[str, tuple[int, ...], bytes]:
    """Return the type, sizes and bytes of what a door gave, or of an array."""
    array = np.asarray(x if isinstance(x, np.ndarray) else bridge.to_numpy(x))
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array.dtype.name, array.shape, array.tobytes()


def refused_everywhere(x: Any) -> list[str]:
    wrong = []
    for name, call in {"from_dlpack": bridge.from_dlpack, **SHARING, **DOORS}.items():
        try:
            call(x)
        except (BufferError, TypeError, RuntimeError) as error:  # of FeedBlob the last
            if "\n" in str(error):
                wrong.append(f"{name} shows {error}")
        except Exception as error:  # noqa: BLE001  reported below
            wrong.append(f"{name} raises {type(error).__name__}: {error}")
        else:
            wrong.append(f"{name} takes what from_dlpack refuses")
    return wrong


def what_is_wrong(kind: Kind, x: Any, everywhere: bool) -> list[str]:
    """Return what is wrong with the ways of `x` into the bridge."""
    with bridge.audit() as log:
        try:
            y = bridge.from_dlpack(x)
        except (BufferError, TypeError):
            return refused_everywhere(x)
    wrong = []
    expected = values_of(np.asarray(kind.read(x)))
    if values_of(y) != expected:
        return [f"it is {values_of(y)} and not {expected}"]
    copied = log.records[0].copied
    if len(log.records) != 1 or log.copied_bytes != y.nbytes() * copied:
        wrong.append(f"records {log.records}")
    for name, call in SHARING.items():
        try:
            again = call(x)
        except BufferError:
            if not copied:
                wrong.append(f"shared, and {name} refuses it")
            continue
        if copied and y.numel():
            wrong.append(f"copied, and {name} takes it")
        if y.numel() and not copied and again.data_ptr() != y.data_ptr():
            wrong.append(f"{name} has another address")
    if y.numel() and not copied:
        if not bridge.shares_memory(x, y):
            wrong.append("shares_memory denies it")
        if everywhere and bridge.explain(x).address != y.data_ptr():
            wrong.append(f"explain has {bridge.explain(x).address}")
    doors = DOORS if everywhere else {"copy=True": DOORS["copy=True"]}
    for name, call in doors.items():
        try:
            found = call(x)
        except bridge.c10.EnforceNotMet as error:
            if name != "FeedBlob" or y.is_contiguous():  # as for torch's tensors
                wrong.append(f"{name}: {error}")
        else:
            if values_of(found) != expected:
                wrong.append(f"{name} gives {values_of(found)} and not {expected}")
            if name == "copy=True" and (found.readonly or bridge.shares_memory(found, y)):
                wrong.append("copy=True does not give memory of its own")
    return wrong


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_every_door_takes_or_refuses_each_kind_of_object(library: str, layout: str) -> None:
    wrong, made = [], 0
    for kind in kinds(library):
        for dtype in TYPES:
            try:
                x = kind.make(LAYOUTS[layout](dtype))
            except Exception:  # noqa: BLE001  no such objects, which each library says its way
                continue
            made += 1
            found = what_is_wrong(kind, x, dtype in EVERYWHERE)
            wrong += [f"{kind.name} of {dtype}: {what}" for what in found]
    assert not wrong, "\n".join(wrong)
    assert made or layout != "plain"


@pytest.mark.parametrize("library", sorted(LIBRARIES))
def test_a_plain_object_is_shared_and_kept_alive(library: str) -> None:
    """It is shared unless the library has no memory to share, and lives as long as it is used."""
    for kind in kinds(library):
        sizes = (2, 3) if kind.name in ("lists", "shaped") else (6,)
        x = kind.make(numbers("float32", sizes))
        with bridge.audit() as log:
            y = bridge.from_dlpack(x)
        assert log.records[0].copied == kind.copied, kind.name
        expected = values_of(np.array(kind.read(x)))
        del x
        gc.collect(0)
        others = [np.full(6, 77, np.float32) for _ in range(100)]
        assert values_of(y) == expected, kind.name
        del others


def wrong_out(library: str, read: Callable[[Any], Any], array: Any) -> list[str]:
    """Return what is wrong with the ways of `array` out of the bridge into a library."""
    expected = values_of(array)
    with bridge.audit() as log:
        try:
            y = bridge.convert(array, library)
        except BufferError as error:
            return [f"the error {error}"] if "\n" in str(error) else []
    # (libraries read the types that NumPy lacks as others)
    if hasattr(np, expected[0]) and values_of(np.asarray(read(y))) != expected:
        return [f"it is {values_of(np.asarray(read(y)))} and not {expected}"]
    wrong = []
    back = bridge.from_dlpack(y)
    if values_of(back) != expected:
        wrong.append(f"it comes back as {values_of(back)} and not {expected}")
    shared = bridge.shares_memory(array, back)
    if array.size and shared == any(record.copied for record in log.records):
        wrong.append(f"shared is {shared}, and the records say {log.records}")
    if shared and not array.flags.writeable and not back.readonly:
        wrong.append("it is writable now")
    try:
        again = bridge.convert(array, library, copy=False)
    except BufferError as error:
        if shared or "\n" in str(error):
            wrong.append(f"shared, and copy=False raises {error}")
    else:
        if array.size and not bridge.shares_memory(array, bridge.from_dlpack(again)):
            wrong.append("copy=False copies")
    if bridge.shares_memory(array, bridge.from_dlpack(bridge.convert(array, library, copy=True))):
        wrong.append("copy=True shares")
    return wrong


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("library", sorted(READERS))
def test_each_library_gets_the_values_of_each_type_and_layout(library: str, layout: str) -> None:
    read = READERS[library](library)
    wrong = []
    for dtype in TYPES:
        array = LAYOUTS[layout](dtype)
        if library == "pandas" and array.shape == (2, 0):
            continue  # a frame without columns has no type of elements
        wrong += [f"{dtype}: {what}" for what in wrong_out(library, read, array)]
    assert not wrong, "\n".join(wrong)
