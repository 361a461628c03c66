# SPDX-License-Identifier: Apache-2.0
"""DeserializeBlob and Blob.deserialize: whose memory is written, chunks, and what is refused."""

from __future__ import annotations

import ctypes
import random
import resource
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import workspace
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.serialize import serialize_chunks
from tests.golden.blob_messages import (
    blob,
    bytes_field,
    dims,
    floats,
    int8,
    int_field,
    segment,
    tag,
    varint,
)
from tests.helpers.isolate import isolated
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")

EVERY_TYPE = [
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
]


def message(value: Any) -> bytes:
    holder = Blob()
    holder.feed(value)
    return holder.serialize("x")


def test_blob_without_a_workspace_deserializes_too() -> None:
    holder = Blob()
    assert holder.deserialize(message(np.arange(3))) is None
    np.testing.assert_array_equal(holder.fetch(), np.arange(3))
    with pytest.raises(EnforceNotMet) as caught:
        holder.deserialize(b"junk")
    refused(caught.value, "The blob", "Blob.deserialize", kind=ValueError)
    np.testing.assert_array_equal(holder.fetch(), np.arange(3))


@pytest.mark.parametrize("wrap", [bytearray, memoryview, lambda data: np.frombuffer(data, "u1")])
def test_any_buffer_of_bytes_will_do(wrap: Any) -> None:
    workspace.DeserializeBlob("x", wrap(message(np.arange(300))))
    np.testing.assert_array_equal(workspace.FetchBlob("x"), np.arange(300))


@pytest.mark.parametrize(
    "data", [None, "text", 3, [1], np.zeros(3), memoryview(b"abcd")[::2], np.zeros((2, 2), "u1")]
)
def test_object_without_a_buffer_of_bytes_is_a_type_error(data: Any) -> None:
    with pytest.raises(EnforceNotMet) as caught:
        workspace.DeserializeBlob("x", data)
    refused(caught.value, "bytes", kind=TypeError)
    assert not workspace.HasBlob("x")


def test_own_buffer_is_written_in_place() -> None:
    workspace.FeedBlob("x", np.zeros(4, np.float32))
    seen = workspace.FetchTorch("x")
    workspace.DeserializeBlob("x", message(np.float32([1, 2, 3, 4])))
    assert seen.tolist() == [1, 2, 3, 4]
    workspace.DeserializeBlob("x", message(np.float32([[5, 6], [7, 8]])))
    assert seen.tolist() == [5, 6, 7, 8]
    assert workspace.FetchBlob("x").shape == (2, 2)


def test_another_type_gets_memory_of_its_own() -> None:
    workspace.FeedBlob("x", np.zeros(4, np.float32))
    seen = workspace.FetchTorch("x")
    workspace.DeserializeBlob("x", message(np.arange(4, dtype=np.int32)))
    assert seen.tolist() == [0, 0, 0, 0]
    np.testing.assert_array_equal(workspace.FetchBlob("x"), np.arange(4, dtype=np.int32))


@pytest.mark.parametrize("part", [False, True])
def test_memory_from_outside_is_not_written(part: bool) -> None:
    fed = torch.arange(4.0)
    workspace.FeedBlob("x", fed)
    if part:
        workspace.DeserializeBlob("x", blob(dims(4) + floats(8, 9) + segment(1, 3)))
        assert workspace.FetchBlob("x").tolist() == [0, 8, 9, 3]
    else:
        workspace.DeserializeBlob("x", message(np.float32([1, 1, 1, 1])))
        assert workspace.FetchBlob("x").tolist() == [1, 1, 1, 1]
    assert fed.tolist() == [0, 1, 2, 3]


def test_a_blob_tensor_in_use_sees_the_new_values() -> None:
    holder = Blob()
    handle = holder.tensor()
    holder.deserialize(message(np.float32([1, 2])))
    assert handle.fetch().tolist() == [1, 2]
    holder.deserialize(message(np.arange(3)))
    assert handle.fetch().tolist() == [0, 1, 2]


def test_values_of_other_kinds_in_the_blob_are_replaced() -> None:
    for value in (b"text", np.arange(2.0), np.array([b"a"], dtype=object)):
        for other in (b"other", np.arange(3), np.array([b"b", b"c"], dtype=object)):
            workspace.FeedBlob("x", value)
            workspace.DeserializeBlob("x", message(other))
            fetched = workspace.FetchBlob("x")
            assert fetched == other if isinstance(other, bytes) else (fetched == other).all()


@pytest.mark.parametrize("dtype", [*EVERY_TYPE, "string"])
@pytest.mark.parametrize("seed", range(3))
def test_chunks_come_in_any_order(dtype: str, seed: int) -> None:
    value: Any = np.arange(77).reshape(7, 11)
    if dtype == "string":
        value = np.array([b"%d" % n for n in range(77)], dtype=object).reshape(7, 11)
    else:
        value = value.astype(dtype)
    holder = Blob()
    holder.feed(value)
    records = list(serialize_chunks(holder, "x", 10, "Save"))
    assert len(records) == 8
    random.Random(seed).shuffle(records)
    for _, data in records:
        workspace.DeserializeBlob("y", data)
    assert workspace.FetchBlob("y").tolist() == value.tolist()


def test_elements_without_a_chunk_are_zero_or_keep_their_values() -> None:
    part = blob(dims(4) + floats(8, 9) + segment(1, 3))
    workspace.DeserializeBlob("x", part)
    assert workspace.FetchBlob("x").tolist() == [0, 8, 9, 0]
    workspace.FeedBlob("y", np.float32([[1, 2], [3, 4]]))
    workspace.DeserializeBlob("y", part)
    assert workspace.FetchBlob("y").tolist() == [1, 8, 9, 4]
    workspace.FeedBlob("z", np.float64([1, 2, 3, 4]))
    workspace.DeserializeBlob("z", part)
    assert workspace.FetchBlob("z").tolist() == [0, 8, 9, 0]
    workspace.DeserializeBlob("s", blob(dims(3) + int_field(2, 4) + b"\x32\1a" + segment(1, 2)))
    assert workspace.FetchBlob("s").tolist() == [b"", b"a", b""]


class DirtyAllocator(c10.Allocator):
    """Gives memory that is full of ones, 64 bytes aligned and not at the start of a page."""

    def raw_allocate(self, nbytes: int) -> int:
        address = super().raw_allocate(nbytes)
        ctypes.memset(address, 0xFF, nbytes)
        return address


@pytest.mark.parametrize("n", [3, 1000, (1 << 20) + 5, 9_000_001])
@pytest.mark.parametrize("own_allocator", [False, True])
def test_large_memory_without_a_chunk_is_zero_whatever_it_was(n: int, own_allocator: bool) -> None:
    part = blob(dims(n) + floats(8, 9) + segment(1, 3))
    before = c10.GetAllocator("cpu")
    if own_allocator:
        c10.SetAllocator("cpu", DirtyAllocator())
    try:
        for name in "xyz":
            for again in range(2):  # what a freed tensor leaves is dirty
                workspace.DeserializeBlob(name, part)
                found = workspace.FetchBlob(name)
                assert found.shape == (n,)
                assert found[1:3].tolist() == [8, 9]
                assert np.count_nonzero(found) == 2, again
                workspace.FeedBlob(name, np.full(n, 7, np.float32))
                workspace.ResetWorkspace()
    finally:
        c10.SetAllocator("cpu", before)


def test_refused_chunk_leaves_the_earlier_ones_as_they_are() -> None:
    workspace.DeserializeBlob("x", blob(dims(4) + floats(8, 9) + segment(1, 3)))
    for bad in (
        blob(dims(4) + floats(8, 9) + segment(3, 5)),
        blob(dims(4) + floats(8, 9) + segment(0, 3)),
        blob(dims(5) + floats(8, 9, 10) + segment(0, 2)),
        blob(dims(4) + int_field(2, 10) + bytes_field(10, b"\x80") + segment(0, 1)),
    ):
        with pytest.raises(EnforceNotMet):
            workspace.DeserializeBlob("x", bad)
    assert workspace.FetchBlob("x").tolist() == [0, 8, 9, 0]


@pytest.mark.parametrize("dtype", EVERY_TYPE)
def test_raw_data_is_read_where_the_typed_field_is_empty(dtype: str) -> None:
    value = np.arange(5).astype(dtype)
    number = caffe2.core.DataType.__dict__
    names = {"float32": "FLOAT", "float64": "DOUBLE"}
    kind = int_field(2, number[names.get(dtype, dtype.upper())])
    for storage in (b"", int_field(12, 2)):
        raw = bytes_field(13, value.tobytes())
        workspace.DeserializeBlob("x", blob(dims(5) + kind + storage + raw))
        np.testing.assert_array_equal(workspace.FetchBlob("x"), value)
        cut = blob(dims(5) + kind + storage + bytes_field(13, value.tobytes()[:-1]))
        with pytest.raises(EnforceNotMet, match="require"):
            workspace.DeserializeBlob("x", cut)


def test_bytes_other_than_zero_and_one_become_true() -> None:
    workspace.DeserializeBlob("x", blob(dims(3) + int_field(2, 5) + bytes_field(5, b"\0\2\xff")))
    assert workspace.FetchBlob("x").view("u1").tolist() == [0, 1, 1]


def test_int8_tensor_keeps_its_scale_as_a_float() -> None:
    workspace.DeserializeBlob("q", int8(scale=0.1))
    data, scale, zero_point = workspace.FetchInt8Blob("q")
    assert (data.tolist(), scale, zero_point) == ([1, 2], float(np.float32(0.1)), 3)
    workspace.DeserializeBlob("again", workspace.SerializeBlob("q"))
    assert workspace.FetchInt8Blob("again")[1:] == (scale, zero_point)
    assert workspace.FetchInt8Blob("again").data.tolist() == [1, 2]


@pytest.mark.parametrize("zero_point", [float("nan"), float("inf"), 2.0**31, -(2.0**31) - 1])
def test_zero_point_beyond_int32_is_refused(zero_point: float) -> None:
    with pytest.raises(EnforceNotMet, match="int32"):
        workspace.DeserializeBlob("q", int8(bias=zero_point))


def test_cuda_tensor_is_refused_on_a_machine_without_cuda() -> None:
    if torch.cuda.is_available():
        pytest.skip("the absence of a CUDA device: this machine has one")
    device = bytes_field(8, int_field(1, 1))
    for made in (blob(dims(2) + floats(1, 2) + device), blob(dims(0) + device)):
        with pytest.raises(EnforceNotMet, match="cuda"):
            workspace.DeserializeBlob("x", made)


HOSTILE = {
    "part of a tensor larger than memory": blob(dims(1 << 50) + floats(1) + segment(0, 1)),
    "part of very many strings": blob(dims(1 << 33) + int_field(2, 4) + b"\x32\0" + segment(0, 1)),
    "a shape larger than its values": blob(dims(1 << 34) + floats(1)),
    "zero bytes of values": blob(dims(1 << 34) + int_field(2, 10)),
    "half a million dimensions": blob(bytes_field(1, b"\1" * 500_000) + floats(1)),
    "dimensions that multiply to very much": blob(bytes_field(1, varint(1 << 62) * 4000)),
    "deep groups": blob(dims(1) + floats(1)) + tag(9, 3) * 500_000,
    "very many groups": b"".join([tag(9, 3) + tag(9, 4)] * 250_000),
    "very many tensors": bytes_field(2, b"Tensor") + bytes_field(3, b"") * 300_000,
    "very many single values": blob(dims(7) + b"\x1d\0\0\0\0" * 200_000),
    "values that alternate": blob(dims(7) + b"\x1d\0\0\0\0\x20\0" * 100_000),
    "overlong varints": blob(dims(7) + int_field(2, 10) + bytes_field(10, b"\xff" * 1_000_000)),
    "empty packed fields": blob(dims(7) + b"\x1a\0" * 500_000),
}


@isolated
def refuse_in_bounds(label: str) -> None:
    """In a child, whose peak memory is its own."""
    data = HOSTILE[label]
    workspace.FeedBlob("x", np.arange(3))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    allocated = c10.GetAllocator("cpu").stats.allocated_bytes
    begin = time.process_time()
    with pytest.raises(EnforceNotMet):
        workspace.DeserializeBlob("x", data)
    assert time.process_time() - begin < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
    assert c10.GetAllocator("cpu").stats.allocated_bytes == allocated
    assert workspace.FetchBlob("x").tolist() == [0, 1, 2]


@pytest.mark.parametrize("label", sorted(HOSTILE))
def test_hostile_message_is_refused_in_bounded_memory_and_time(label: str) -> None:
    refuse_in_bounds(label=label)


def test_bytes_that_change_while_they_are_read_do_no_harm() -> None:
    """Lengths and counts are checked again where they are used; values may be any."""
    value = np.random.default_rng(1).integers(-(2**62), 2**62, 200_000)
    data = bytearray(message(value))
    good = bytes(data)
    done = threading.Event()

    def scribble() -> None:
        rng = random.Random(5)
        while not done.is_set():
            for _ in range(50):
                data[rng.randrange(100, len(data))] = rng.randrange(256)
            data[:] = good

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for _ in range(30):
            try:
                workspace.DeserializeBlob("x", data)
            except EnforceNotMet:
                continue
            assert workspace.FetchBlob("x").shape == (200_000,)
    finally:
        done.set()
        thread.join()


def test_no_memory_is_an_error_and_leaves_the_blob(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(c10.Allocator):
        def raw_allocate(self, nbytes: int) -> int:
            raise MemoryError(f"no {nbytes} bytes")

    workspace.FeedBlob("x", np.arange(3))
    data = message(np.arange(100.0))
    usual = c10.GetAllocator("cpu")
    c10.SetAllocator("cpu", Full())
    try:
        with pytest.raises(EnforceNotMet) as caught:
            workspace.DeserializeBlob("x", data)
    finally:
        c10.SetAllocator("cpu", usual)
    refused(caught.value, "no 800 bytes", kind=MemoryError)
    assert workspace.FetchBlob("x").tolist() == [0, 1, 2]
