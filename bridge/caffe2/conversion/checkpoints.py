# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of all formats: told by their content, opened as entries, and written as a whole."""

from __future__ import annotations

import os
import stat
import struct
import zipfile

from bridge.annotation import Any
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrap_error, wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.serialize import deserialize
from bridge.caffe2.conversion.database_files import DatabaseEntries, write_records
from bridge.caffe2.conversion.entries import with_progress
from bridge.caffe2.conversion.npz_files import NpzEntries, write_npz
from bridge.caffe2.conversion.pickle_source import PickleEntries
from bridge.caffe2.conversion.safetensors_files import (
    SafetensorsEntries,
    is_safetensors,
    write_safetensors,
)
from bridge.caffe2.files.databases import open_writer
from bridge.caffe2.files.lmdb import LMDBWriter
from bridge.caffe2.files.whole_file import WholeFile, whole_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.caffe2.conversion.entries import Entries, Entry, Progress


# The kinds that hold blobs; a database may be a predictor export.
CHECKPOINTS = ("minidb", "lmdb", "pickle", "safetensors", "npz")
NET = "net"
_CALLER = "convert"
_OF_KIND = "kind_of_file"
_HEAD = 64  # bytes
# Of protocols that have no mark: a dict, a list, an object.
_OLD_PICKLES = (b"(d", b"(l", b"}", b"c__builtin__", b"ccollections")
_LMDB_MAGIC = 0xBEEFC0DE
_META_NET = "!!META_NET_DEF"  # the record with the nets of a predictor export
_MAX_KEY = 1 << 16  # bytes; keys are names of blobs
_KNOWN = "a net (.pb, .pbtxt), minidb, LMDB, safetensors, .npz, or a pickle of NumPy arrays"
_STREAMS = {"safetensors": write_safetensors, "npz": write_npz}
# The files of an LMDB database.
_LMDB_FILES = frozenset({"data.mdb", "lock.mdb"})


def kind_of_file(path: str) -> str:
    """Return the kind of a file, or of the folder of an LMDB database.

    One of `CHECKPOINTS`, or `NET` for a possible net, as text or as bytes. Raises EnforceNotMet:
    it does not exist or cannot be read (also an OSError), or is none of these (also a ValueError).
    """
    with wrapping(f"{path!r} cannot be read", _OF_KIND, (OSError, ValueError)):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            if os.path.isfile(os.path.join(path, "data.mdb")):
                return "lmdb"
            raise EnforceValueError("it is a folder, and not one of an LMDB database")
        if not stat.S_ISREG(mode):
            raise EnforceValueError("it is not a regular file")
        with open(path, "rb") as file:
            head = file.read(_HEAD)
        nbytes = os.stat(path).st_size
    if not head:
        raise EnforceValueError(f"{path!r} is empty.", _OF_KIND)
    if is_safetensors(head[:9], nbytes):
        return "safetensors"
    if head.startswith(b"PK\x03\x04"):
        return _kind_of_zip(path)
    if len(head) >= 24 and struct.unpack_from("<I", head, 16)[0] == _LMDB_MAGIC:
        return "lmdb"
    if head[0] == 0x80 and len(head) > 1 and head[1] <= 5:
        return "pickle"
    if head.startswith(_OLD_PICKLES) and _ends(path, b"."):
        return "pickle"
    if _is_minidb(head, nbytes):
        return "minidb"
    return NET


def unknown_file(path: str) -> EnforceValueError:
    """Return the error for a file that is nothing that can be read."""
    return EnforceValueError(f"{path!r} is not {_KNOWN}.", _OF_KIND)


def _is_minidb(head: bytes, nbytes: int) -> bool:
    if len(head) < 8:
        return False
    key, value = struct.unpack_from("<ii", head)
    return bool(0 < key < _MAX_KEY and value > 0 and 8 + key + value <= nbytes)


def _kind_of_zip(path: str) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError) as cause:
        raise wrap_error(f"{path!r} cannot be read", _OF_KIND, cause) from cause
    except Exception as cause:  # of zipfile, such as NotImplementedError of a version
        raise EnforceValueError(f"{path!r} cannot be read: {cause}", _OF_KIND) from cause
    if any(name.endswith(".npy") for name in names):
        return "npz"
    raise EnforceValueError(
        f"{path!r} is a zip archive without NumPy arrays, as torch writes; it is not {_KNOWN}.",
        _OF_KIND,
    )


def _ends(path: str, text: bytes) -> bool:
    with open(path, "rb") as file:
        file.seek(-len(text), os.SEEK_END)
        return file.read() == text


def open_entries(path: str, kind: str) -> Entries:
    """Open a file of a kind of `CHECKPOINTS`.

    Raises EnforceNotMet: it is damaged. OSError.
    """
    if kind == "safetensors":
        return SafetensorsEntries(path)
    if kind == "npz":
        return NpzEntries(path)
    if kind == "pickle":
        return PickleEntries(path)
    return DatabaseEntries(path, kind)


def write_entries(
    path: str, kind: str, entries: Sequence[Entry], progress: Progress | None = None
) -> None:
    """Write entries to a file of a kind: "safetensors", "npz", "minidb" or "lmdb".

    A file at the path is replaced when all is on the disk; until then it is as it was. Raises
    EnforceNotMet: the format cannot hold a blob, or the file cannot be written. OSError.
    """
    streams = with_progress(entries, progress)
    if kind == "minidb":
        with open_writer(kind, path) as db:
            write_records(db, entries, streams)
        return
    what = "Database" if kind == "lmdb" else "File"
    with wrapping(f"{what} {path!r} cannot be written, and is unchanged", _CALLER, OSError):
        if kind == "lmdb":
            refusal = f"{path!r} is not an LMDB database, and is not replaced by one."
            with (
                whole_folder(path, _LMDB_FILES, refusal, _CALLER) as folder,
                LMDBWriter(folder, path) as db,
            ):
                write_records(db, entries, streams)
        else:
            with WholeFile(path) as file:
                _STREAMS[kind](file, entries, streams)


class PredictorExport:
    """The nets of a predictor export, NetDefs, and the names of its blobs.

    That is a database with the weights and, in one record, the nets (a MetaNetDef); Caffe2's
    trainers wrote them as ``.mdl`` or ``.minidb``. net: computes the outputs. shapes: creates blobs
    of the inputs' sizes, or None.

    Follows caffe2/proto/metanet.proto and caffe2/python/predictor/predictor_exporter.py, PyTorch
    1.8.1.
    """

    __slots__ = ("inputs", "net", "outputs", "parameters", "shapes")

    def __init__(self, data: bytes) -> None:
        from bridge.caffe2.proto.metanet_pb2 import MetaNetDef

        meta = MetaNetDef.FromString(data)
        nets = {one.key: one.value for one in meta.nets}
        blobs = {one.key: list(one.value) for one in meta.blobs}
        self.net: Any = nets["PREDICT_NET_TYPE"]
        self.shapes: Any = nets.get("PREDICT_INIT_NET_TYPE")
        self.inputs: list[str] = blobs.get("INPUTS_BLOB_TYPE", [])
        self.outputs: list[str] = blobs.get("OUTPUTS_BLOB_TYPE", [])
        self.parameters: list[str] = blobs.get("PARAMETERS_BLOB_TYPE", [])


def predictor_export_in(entries: Sequence[Entry]) -> PredictorExport | None:
    """Return the nets among the entries of a database; None if it has none.

    Raises EnforceNotMet, also a ValueError: the record is damaged.
    """
    for entry in entries:
        if entry.name == _META_NET and entry.message is not None:
            with wrapping(f"The nets in record {_META_NET!r} cannot be read", "predictor export"):
                blob = Blob()
                deserialize(blob, entry.message(), f"Blob {_META_NET!r}", "predictor export")
                return PredictorExport(bytes(blob._object))
    return None
