# SPDX-License-Identifier: Apache-2.0
"""SerializeBlob and Blob.serialize beyond the recorded bytes: what, from where, and what not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from google.protobuf.message import Message

from bridge import at, c10, caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import workspace
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.serialize import DEFAULT_CHUNK_SIZE, serialize_chunks
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def message_of(data: bytes) -> Message:
    return caffe2_pb2.BlobProto.FromString(data)


def test_message_names_the_blob_and_its_tensor() -> None:
    workspace.FeedBlob("a/wéird name", np.float32([1, 2]))
    message = message_of(workspace.SerializeBlob("a/wéird name"))
    assert (message.name, message.tensor.name) == ("a/wéird name", "a/wéird name")
    assert list(message.tensor.float_data) == [1, 2]
    assert message.tensor.device_detail.HasField("device_type")
    assert (message.tensor.segment.begin, message.tensor.segment.end) == (0, 2)


def test_blob_is_written_under_the_name_that_is_said() -> None:
    blob = Blob()
    blob.feed(b"text")
    message = message_of(blob.serialize("other"))
    assert (message.name, message.type, message.content) == ("other", "std::string", b"text")
    assert blob.serialize(b"other") == blob.serialize("other")


@pytest.mark.parametrize("name", [None, 3, b"\xff", "\ud800"])
def test_a_name_that_is_not_text_is_refused(name: Any) -> None:
    blob = Blob()
    blob.feed(b"text")
    with pytest.raises(EnforceNotMet) as caught:
        blob.serialize(name)
    assert caught.value.caller == "Blob.serialize"
    with pytest.raises(EnforceNotMet):
        workspace.SerializeBlob(name)


def test_unknown_blob_is_a_key_error_too() -> None:
    with pytest.raises(EnforceNotMet) as caught:
        workspace.SerializeBlob("nobody")
    refused(caught.value, "'nobody'", "SerializeBlob", kind=KeyError)


def test_torch_memory_is_written_as_it_is_now() -> None:
    fed = torch.arange(6.0).reshape(2, 3)
    workspace.FeedBlob("x", fed)
    fed[1, 2] = -1
    message = message_of(workspace.SerializeBlob("x"))
    assert list(message.tensor.dims) == [2, 3]
    assert list(message.tensor.float_data) == [0, 1, 2, 3, 4, -1]


def test_view_with_an_offset_is_written_without_its_surroundings() -> None:
    workspace.FeedBlob("x", torch.arange(12, dtype=torch.int32).reshape(4, 3)[1:3])
    assert list(message_of(workspace.SerializeBlob("x")).tensor.int32_data) == [3, 4, 5, 6, 7, 8]


def test_tensor_with_strides_is_written_row_after_row() -> None:
    tensor = caffe2.Tensor([2, 3], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "float32")
    blob = Blob()
    blob.Reset(tensor)
    at.Tensor(tensor).set_(at.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]).t())
    assert not tensor.is_contiguous()
    assert list(message_of(blob.serialize("x")).tensor.float_data) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64", "uint32", "uint64", "float8_e4m3fn"])
@pytest.mark.parametrize("n", [0, 3])
def test_types_that_caffe2_lacks_are_refused_by_name(dtype: str, n: int) -> None:
    blob = Blob()
    blob.Reset(caffe2.empty([n], dtype))
    with pytest.raises(EnforceNotMet) as caught:
        blob.serialize("x")
    refused(caught.value, dtype, "convert", kind=TypeError)


def test_blob_that_holds_nothing_or_an_object_is_refused() -> None:
    workspace.CreateBlob("x")
    with pytest.raises(EnforceNotMet, match="Blob 'x' holds nothing"):
        workspace.SerializeBlob("x")
    blob = Blob()
    c10.TypeMeta.Register(_Thing)
    blob.Reset(_Thing())
    with pytest.raises(EnforceNotMet, match="_Thing"):
        blob.serialize("x")
    blob.Reset(caffe2.Tensor())
    with pytest.raises(EnforceNotMet, match="undefined"):
        blob.serialize("x")


class _Thing:
    """Something that a blob can hold and no file."""


def test_tensor_without_memory_is_refused_unless_it_has_no_elements() -> None:
    blob = Blob()
    blob.Reset(caffe2.Tensor([2, 3], "cpu"))
    with pytest.raises(EnforceNotMet, match="mutable_data"):
        blob.serialize("x")
    tensor = caffe2.Tensor([2, 3], "cpu")
    tensor.mutable_data("float32")
    tensor.FreeMemory()
    blob.Reset(tensor)
    with pytest.raises(EnforceNotMet, match="mutable_data"):
        blob.serialize("x")


def test_tensor_without_type_or_elements_has_the_bytes_of_caffe2() -> None:
    blob = Blob()
    blob.tensor()
    real = b"\n\x01b\x12\x06Tensor\x1a\x11\x08\0\x10\0:\x01bB\x02\x08\0Z\x04\x08\0\x10\0"
    assert blob.serialize("b") == real
    back = Blob()
    back.deserialize(real)
    assert back.fetch().dtype == np.float32


def test_more_than_protobuf_reads_is_refused_before_it_is_copied() -> None:
    # never touched, so never there
    workspace.FeedBlob("x", torch.from_numpy(np.zeros(2**29, np.float32)))
    with pytest.raises(EnforceNotMet) as caught:
        workspace.SerializeBlob("x")
    refused(caught.value, "Save", kind=ValueError)


def chunks(blob: Blob, size: int) -> list[tuple[bytes, Any]]:
    return [(key, message_of(data)) for key, data in serialize_chunks(blob, "x", size, "Save")]


def test_chunks_have_numbered_keys_and_segments() -> None:
    blob = Blob()
    blob.feed(np.arange(10, dtype=np.int64).reshape(2, 5))
    found = chunks(blob, 4)
    assert [key for key, _ in found] == [b"x#%0", b"x#%1", b"x#%2"]
    segments = [message.tensor.segment for _, message in found]
    assert [(one.begin, one.end) for one in segments] == [(0, 4), (4, 8), (8, 10)]
    assert [list(m.tensor.int64_data) for _, m in found] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert {tuple(message.tensor.dims) for _, message in found} == {(2, 5)}


def test_one_chunk_of_all_elements_has_the_bytes_of_serialize() -> None:
    blob = Blob()
    for value in (np.arange(5.0), np.zeros((0, 3), np.float32), np.array(b"s", dtype=object)):
        blob.feed(value)
        ((key, data),) = serialize_chunks(blob, "x", DEFAULT_CHUNK_SIZE, "Save")
        assert (key, data) == (b"x#%0", blob.serialize("x"))


def test_a_string_is_one_record_under_the_name_of_its_blob() -> None:
    blob = Blob()
    blob.feed(b"text")
    assert [key for key, _ in serialize_chunks(blob, "x", 1, "Save")] == [b"x"]


def test_chunks_of_no_elements_are_refused() -> None:
    blob = Blob()
    blob.feed(np.arange(3))
    with pytest.raises(EnforceNotMet, match="not 0"):
        list(serialize_chunks(blob, "x", 0, "Save"))


FIELDS = {"float16": "int32_data", "int64": "int64_data"}


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "uint16", "int16", "int32", "int64"])
@pytest.mark.parametrize("seed", range(4))
def test_varints_are_protobufs_own_at_every_length(dtype: str, seed: int) -> None:
    """Around each number of bytes that a varint may take, and each end of the array."""
    rng = np.random.default_rng(seed)
    holder, back = Blob(), Blob()
    for n in [*range(40), 4000 + seed]:
        bits = rng.integers(0, 65, n)
        value = rng.integers(-(2**63), 2**63 - 1, n, endpoint=True) >> (64 - bits).clip(0, 63)
        value = (value + rng.integers(-1, 2, n)).astype(dtype)
        if seed == 0:
            value = value & 1 if dtype != "bool" else value
        holder.feed(value)
        data = holder.serialize("x")
        message = message_of(data)
        field = getattr(message.tensor, FIELDS.get(dtype, "int32_data"))
        assert list(field) == value.astype("int64").tolist()
        assert len(data) == message.ByteSize()
        back.deserialize(message.SerializeToString())
        assert back.fetch().tobytes() == value.tobytes()


@pytest.mark.cuda
def test_cuda_tensor_says_its_device_and_goes_back_to_it() -> None:
    workspace.FeedBlob("x", torch.arange(3.0, device="cuda"))
    data = workspace.SerializeBlob("x")
    device = message_of(data).tensor.device_detail
    assert (device.device_type, device.device_id) == (caffe2_pb2.CUDA, 0)
    workspace.DeserializeBlob("y", data)
    assert workspace.FetchTorch("y").device == torch.device("cuda:0")
    assert workspace.FetchTorch("y").tolist() == [0, 1, 2]


@pytest.mark.cuda
def test_bytes_of_host_memory_go_there_whatever_the_blob_holds() -> None:
    """Also where the blob has memory of its own on a device, of the same type and size."""
    workspace.FeedBlob("x", np.arange(3, dtype=np.float32))
    data = workspace.SerializeBlob("x")
    workspace.FeedBlob("x", np.zeros(3, np.float32), "cuda:0")
    there = workspace.FetchTorch("x")
    workspace.DeserializeBlob("x", data)
    assert workspace.FetchTorch("x").device == torch.device("cpu")
    assert workspace.FetchTorch("x").tolist() == [0, 1, 2]
    assert there.tolist() == [0, 0, 0]
    workspace.FeedBlob("x", np.zeros(3, np.float32), "cuda_host")
    page_locked = workspace.FetchTorch("x")
    workspace.DeserializeBlob("x", data)
    assert page_locked.tolist() == [0, 1, 2]
