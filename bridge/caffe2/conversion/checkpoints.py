# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of all formats: opened as entries, and written as a whole or not at all."""

from __future__ import annotations

import os
import shutil

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.caffe2.conversion.database_source import DatabaseEntries
from bridge.caffe2.conversion.database_target import write_records
from bridge.caffe2.conversion.entries import with_progress
from bridge.caffe2.conversion.npz_files import NpzEntries, write_npz
from bridge.caffe2.conversion.pickle_source import PickleEntries
from bridge.caffe2.conversion.safetensors_files import SafetensorsEntries, write_safetensors
from bridge.caffe2.files.databases import open_writer
from bridge.caffe2.files.lmdb import LMDBWriter
from bridge.caffe2.files.whole_file import WholeFile, replace_folder, temporary_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bridge.caffe2.conversion.entries import Entries, Entry, Progress

_CALLER = "convert"
_STREAMS = {"safetensors": write_safetensors, "npz": write_npz}
# The files of an LMDB database.
_LMDB_FILES = frozenset({"data.mdb", "lock.mdb"})


def open_entries(path: str, kind: str) -> Entries:
    """Open a file of a kind of `file_kinds.CHECKPOINTS`.

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
    if kind == "lmdb":
        _write_lmdb(path, entries, streams)
    elif kind == "minidb":
        with open_writer(kind, path) as db:
            write_records(db, entries, streams)
    else:
        try:
            with WholeFile(path) as file:
                _STREAMS[kind](file, entries, streams)
        except OSError as cause:
            raise wrap_error(
                f"File {path!r} cannot be written, and is unchanged", _CALLER, cause
            ) from cause


def _write_lmdb(path: str, entries: Sequence[Entry], streams: Iterable[Entry]) -> None:
    given, path = path, os.path.abspath(path)
    if os.path.lexists(path) and not (
        os.path.isdir(path) and _LMDB_FILES.issuperset(os.listdir(path))
    ):
        raise EnforceValueError(
            f"{given!r} is not an LMDB database, and is not replaced by one.", _CALLER
        )
    temporary = temporary_name(path)
    try:
        with LMDBWriter(temporary, given) as db:
            write_records(db, entries, streams)
        replace_folder(temporary, path)
    except BaseException as cause:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(cause, OSError):
            raise wrap_error(
                f"Database {given!r} cannot be written, and is unchanged", _CALLER, cause
            ) from cause
        raise
