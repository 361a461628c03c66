# SPDX-License-Identifier: Apache-2.0
"""Doors of files and messages: what is read is written, and is then the same."""

from __future__ import annotations

import contextlib
import io
import math
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

from bridge import at, c10, caffe2, tf
from bridge.caffe2 import predictor_exporter, workspace
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.conversion.checkpoints import (
    CHECKPOINTS,
    kind_of_file,
    open_entries,
    write_entries,
)
from bridge.caffe2.conversion.net_source import net_of_file
from bridge.pickling import _buffer, _items, _sized
from bridge.shell.main import main
from bridge.shell.usage_errors import CommandError
from tests.fuzz.memory import MOST, little_memory
from tests.fuzz.words import Words


# strings are not in the allocator's memory
@mock.patch("bridge.tf.read_tensor_proto.MAX_NBYTES", MOST)
def tensor_proto(data: bytes) -> None:
    """A message of TensorFlow; what it holds is written and read as the same."""
    x = tf.from_tensor_proto(data)
    if math.prod(max(size, 1) for size in x.sizes()) < MOST:
        again = tf.from_tensor_proto(tf.make_tensor_proto(x), copy=True)
        assert again.dtype is x.dtype
        assert list(again.sizes()) == list(x.sizes())
        assert repr(again.tolist()) == repr(x.tolist())  # NaN, too


@little_memory()
def minidb(data: bytes) -> None:
    """A checkpoint; what it holds is saved and loaded as the same."""
    workspace.ResetWorkspace()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.minidb"
        path.write_bytes(data)
        names = caffe2.load_checkpoint(str(path))
        first = {name: workspace.SerializeBlob(name) for name in names}
        caffe2.save_checkpoint(str(path), list(first))
        workspace.ResetWorkspace()
        assert caffe2.load_checkpoint(str(path)) == list(first)
        assert {name: workspace.SerializeBlob(name) for name in names} == first


@little_memory()
def predictor(data: bytes) -> None:
    """A predictor export, which is opened and whose nets are created; nothing is run."""
    workspace.ResetWorkspace()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.minidb"
        path.write_bytes(data)
        with (
            mock.patch.object(workspace, "RunNetOnce", _not_run),
            contextlib.suppress(KeyError),  # as the original, where a net is missing
        ):
            predictor_exporter.prepare_prediction_net(str(path), "minidb")


def _not_run(net: Any) -> None:
    workspace.CreateNet(net, overwrite=True)


@little_memory()
def chunks(data: bytes) -> None:
    """Messages one after the other for one blob; one that is refused changes nothing."""
    blob = Blob()
    taken = 0
    for part in data[4:].split(data[:4] or b"\0"):
        before = blob._contents() is not None and blob.serialize("x")
        try:
            blob.deserialize(part)
            taken += 1
        except c10.EnforceNotMet:
            assert (blob._contents() is not None and blob.serialize("x")) == before
    if not taken:
        raise ValueError("nothing was read")


def _contents(entries: Any) -> dict[str, Any]:
    return {
        entry.name: (
            entry.kind,
            entry.dtype,
            entry.sizes,
            # any byte but 0 is True in a bool, and becomes 1
            b"".join(
                bytes(map(bool, bytes(chunk))) if entry.dtype == "bool" else bytes(chunk)
                for chunk in entry.chunks()
            ),
            entry.message and entry.message(),
        )
        for entry in entries
    }


@little_memory()
def convert(data: bytes) -> None:
    """A file of any kind, converted to another and back."""
    target = ("safetensors", "npz", "minidb")[data[0] % 3 if data else 0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(data[1:])
        kind = kind_of_file(str(path))
        if kind == "lmdb":  # liblmdb believes the pages of its files
            return
        if kind not in CHECKPOINTS:
            net_of_file(str(path))
            return
        there = str(Path(folder) / "y")
        with open_entries(str(path), kind) as opened:
            found = _contents(opened.entries)
            write_entries(there, target, opened.entries)
        with open_entries(there, target) as opened:
            again = _contents(opened.entries)
        if len(found) == len(opened.entries):
            assert again.keys() == found.keys()
            for name, parts in found.items():
                assert again[name][:4] == parts[:4], (name, again[name][:4], parts[:4])


def pickled(data: bytes) -> None:
    """The functions that a pickle calls, with parts that do not fit; a pickle may call anything."""
    words = Words(data)
    sizes, dtype = (
        words.sizes(),
        words.text(("float32", "int64", "string", "bool", "float6_e2m3fn")),
    )
    cls = (at.Tensor, caffe2.Tensor)[words.byte() % 2]
    make = words.byte() % 3
    if make == 0:
        _buffer(cls, data[: words.byte()], sizes, c10.TypeMeta.Make(dtype))
    elif make == 1:
        items = [bytes([words.byte()]) for _ in range(words.byte() % 9)]
        _items(cls, sizes, c10.TypeMeta.Make(dtype), items)
    else:
        _sized(cls, sizes, c10.TypeMeta.Make(dtype), words.text(("cpu", "cuda:0", "meta")))


# Command lines, of which words are exchanged; FILE is the file, OUT a place beside it.
_LINES = (
    ("inspect", "FILE"),
    ("inspect", "--json", "FILE"),
    ("draw", "FILE", "-o", "OUT.svg"),
    ("convert", "FILE", "-o", "OUT.safetensors"),
    ("convert", "FILE", "-o", "OUT.npz"),
    ("convert", "FILE", "-o", "OUT.minidb"),
    ("convert", "FILE", "-o", "OUT.pt2", "--input", "x=1,3"),
    ("convert", "FILE", "-o", "OUT", "--init-net", "FILE"),
)
_WORDS = (
    *("caffe2", "inspect", "draw", "convert", "doctor", "--json", "--help", "-o", "--input"),
    *("x=1,3", "--init-net", "--debug", "nowhere.pb", "OUT.svg", "FILE", "x=-1", "=", "-", "--"),
)


def shell(data: bytes) -> bool:
    """Arguments of the command line, with a damaged file; never a traceback."""
    words = Words(data)
    given = ["caffe2", *words.choice(_LINES)]
    for _ in range(words.byte() % 4 if words.rarely(100) else 0):
        # no path to elsewhere
        word = words.text(_WORDS).replace("/", "_").replace("..", "_").replace("\0", "_")
        given.insert(words.byte() % (len(given) + 1), word)
    if words.rarely(30):
        del given[words.byte() % len(given)]
    debug = words.byte() % 2  # which lets errors through
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        path.write_bytes(words.rest())
        names = {"FILE": str(path), "OUT": str(Path(folder) / "out")}
        there = [names.get(word, word.replace("OUT.", names["OUT"] + ".")) for word in given]
        there += ["--debug"] * debug
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            try:
                status = main(there)
            except SystemExit as error:
                status = int(error.code or 0)
            except (CommandError, OSError):
                assert "--debug" in there
                status = 1
    assert status in (0, 1, 2), status
    assert "--debug" in there or "Traceback" not in said.getvalue(), said.getvalue()
    return status == 0


def seeds() -> list[bytes]:
    """Return files of each kind that is converted."""
    import numpy as np

    workspace.ResetWorkspace()
    values = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([True, False]),
        "c": np.zeros((0, 2), np.int64),
        "d": np.asfortranarray(np.arange(4, dtype=">i2").reshape(2, 2)),
    }
    plain, packed, pickles = io.BytesIO(), io.BytesIO(), []
    np.savez(plain, **values)
    np.savez_compressed(packed, **values)
    import pickle

    for protocol in (0, 2, 4):
        pickles.append(pickle.dumps({"blobs": values}, protocol))
    found = [plain.getvalue(), packed.getvalue(), *pickles]
    with tempfile.TemporaryDirectory() as folder:
        for name, value in values.items():
            workspace.FeedBlob(
                name, np.ascontiguousarray(value.astype(value.dtype.newbyteorder("=")))
            )
        workspace.FeedBlob("text", ["one", "two"])
        workspace.FeedBlob("string", b"bytes")
        path = str(Path(folder) / "x")
        caffe2.save_checkpoint(path, [*values, "text", "string"])
        found.append(Path(path).read_bytes())
        with open_entries(path, "minidb") as opened:
            for kind in ("safetensors", "npz"):
                write_entries(path + kind, kind, opened.entries)
                found.append(Path(path + kind).read_bytes())
    workspace.ResetWorkspace()
    return found
