# SPDX-License-Identifier: Apache-2.0
"""Messages that the real Caffe2 wrote, read, refused or crashed on, as it was recorded."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import workspace
from bridge.caffe2.blobs.message import BlobMessage

GOLDEN = Path(__file__).parents[2] / "golden"
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
READ = json.loads(gzip.decompress((GOLDEN / "read_blobs.json.gz").read_bytes()))
WRITTEN = json.loads((GOLDEN / "written_blobs.json").read_text())

pytestmark = pytest.mark.usefixtures("fresh_workspace")


# The real one takes it, and drops the strings left over.
CONTRADICTION = "more strings than elements"


def decoded(entry: dict[str, Any]) -> Any:
    """The value that a manifest's entry describes, or what stands for it."""
    if entry["kind"] == "bytes":
        return base64.b64decode(entry["value_base64"])
    if entry.get("dtype") == "string":
        return [base64.b64decode(item) for item in entry["strings_base64"]]
    return entry["sha256"]


def found(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if value.dtype == object:
        return value.ravel().tolist()
    return hashlib.sha256(value.tobytes()).hexdigest()


@pytest.mark.parametrize("entry", MANIFEST["blobs"], ids=lambda entry: entry["file"])
def test_blob_of_the_real_caffe2_is_read_and_written_again(entry: dict[str, Any]) -> None:
    data = (GOLDEN / entry["file"]).read_bytes()
    name = entry["blob_name"]
    workspace.DeserializeBlob(name, data)
    if entry["kind"] == "int8":
        value, scale, zero_point = workspace.FetchInt8Blob(name)
        assert (scale, zero_point) == (entry["scale"], entry["zero_point"])
    else:
        value = workspace.FetchBlob(name)
    if entry["kind"] != "bytes":
        dtype = "object" if entry["dtype"] == "string" else entry["dtype"]
        assert (value.dtype.name, list(value.shape)) == (dtype, entry["shape"])
    assert found(value) == decoded(entry)
    if entry["byte_exact"]:
        assert workspace.SerializeBlob(name) == data


@pytest.mark.parametrize(
    "entry",
    [entry for entry in MANIFEST["blobs"] if entry["byte_exact"] and entry["kind"] != "int8"],
    ids=lambda entry: entry["file"],
)
def test_feeding_a_blobs_value_writes_the_same_bytes(entry: dict[str, Any]) -> None:
    data = (GOLDEN / entry["file"]).read_bytes()
    workspace.DeserializeBlob("x", data)
    workspace.FeedBlob(entry["blob_name"], workspace.FetchBlob("x"))
    assert workspace.SerializeBlob(entry["blob_name"]) == data


@pytest.mark.parametrize("label", sorted(MANIFEST["must_be_refused"]))
def test_bad_message_is_refused_and_leaves_the_blob(label: str) -> None:
    data = base64.b64decode(MANIFEST["must_be_refused"][label])
    workspace.FeedBlob("x", np.arange(3.0))
    with pytest.raises(EnforceNotMet, match="Blob 'x'") as caught:
        workspace.DeserializeBlob("x", data)
    assert caught.value.caller == "DeserializeBlob"
    np.testing.assert_array_equal(workspace.FetchBlob("x"), np.arange(3.0))
    with pytest.raises(EnforceNotMet):
        workspace.DeserializeBlob("new", data)
    assert not workspace.HasBlob("new")


def ours(data: bytes) -> dict[str, Any]:
    """Say what the bridge makes of a message, as the recorder does for the real Caffe2."""
    workspace.ResetWorkspace()
    try:
        workspace.DeserializeBlob("x", data)
    except EnforceNotMet:
        assert workspace.Blobs() == []
        return {"refused": True}
    more: dict[str, Any] = {}
    held = workspace.Workspace.current.blobs["x"]
    value = held.fetch()
    if isinstance(value, workspace.Int8Tensor):
        scale = np.float32(value.scale).tobytes().hex()
        more = {"scale": scale, "zero_point": value.zero_point}
        value = value.data
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    flat = value.tobytes()
    if value.dtype == object:
        flat = b"".join(b"%d:%s" % (len(item), item) for item in value.ravel().tolist())
    return {
        "dtype": value.dtype.name,
        "shape": list(value.shape),
        "sha256": hashlib.sha256(flat).hexdigest(),
        **more,
    }


def check_read(record: dict[str, Any]) -> None:
    """What the real Caffe2 crashed on is refused; part of a tensor is compared by its shape."""
    real = record["real"]
    got = ours(base64.b64decode(record["data"]))
    if "refused" in real or "crashed" in real or record["label"] == CONTRADICTION:
        assert got == {"refused": True}
    else:
        if "sha256" not in real:
            got.pop("sha256", None)
        assert got == real


@pytest.mark.parametrize(
    "record",
    [record for record in READ if not record["label"].startswith("mutation")],
    ids=lambda record: record["label"],
)
def test_crafted_message_is_read_as_the_real_caffe2_reads_it(record: dict[str, Any]) -> None:
    check_read(record)


def test_mutated_messages_are_read_as_the_real_caffe2_reads_them() -> None:
    mutated = [record for record in READ if record["label"].startswith("mutation")]
    assert len(mutated) == 1200
    for record in mutated:
        check_read(record)


def array_of(entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Make the array that the recorder made."""
    shape, dtype = entry["shape"], entry["dtype"]
    n = int(np.prod(shape))
    if dtype == "string":
        rng = random.Random(entry["seed"])
        made = np.empty(n, dtype=object)
        for i in range(n):
            length = rng.choice((0, 1, 5, 127, 128, 300))
            made[i] = bytes(rng.randrange(256) for _ in range(length))
        return made.reshape(shape)
    bits = np.random.RandomState(entry["seed"]).bytes(n * np.dtype(dtype).itemsize)
    if dtype == "bool":
        return (np.frombuffer(bits, np.uint8) & 1).astype(bool).reshape(shape)
    return np.frombuffer(bits, dtype).reshape(shape)


@pytest.mark.parametrize("entry", WRITTEN, ids=lambda e: f"{e['dtype']}-{e['shape']}")
def test_random_values_are_written_as_the_real_caffe2_writes_them(entry: dict[str, Any]) -> None:
    """The same bytes, so the real Caffe2 reads what was written here."""
    value = array_of(entry)
    workspace.FeedBlob(entry["name"], value)
    data = workspace.SerializeBlob(entry["name"])
    assert hashlib.sha256(data).hexdigest() == entry["sha256"]
    workspace.DeserializeBlob("back", data)
    back = workspace.FetchBlob("back")
    assert (back.dtype, back.shape) == (value.dtype, value.shape)
    assert back.tolist() == value.tolist() or back.tobytes() == value.tobytes()


@pytest.mark.parametrize(
    ("field", "dtype"),
    [("double_data", "int8"), ("double_data", "float32"), ("int64_data", "float32"),
     ("string_data", "int64"), ("double_data", "string"), ("int64_data", "string")],
)  # fmt: skip
def test_values_go_only_into_elements_that_stand_like_them(field: str, dtype: str) -> None:
    """Another thread may have given the tensor another type since it was made to fit."""
    values: Any = {
        "double_data": np.arange(100.0),
        "int64_data": np.arange(100),
        "string_data": np.array([b"text"] * 100, object),
    }[field]
    workspace.FeedBlob("x", values)
    message = BlobMessage(workspace.SerializeBlob("x")).tensor
    assert message is not None
    tensor = caffe2.empty([100], dtype)
    tensor.data()[:] = [b"" if dtype == "string" else 7] * 100
    before = list(tensor.data()[:])
    with pytest.raises(EnforceNotMet, match="not of"):
        getattr(message, field).into(tensor.unsafeGetTensorImpl(), 0)
    assert list(tensor.data()[:]) == before
