# SPDX-License-Identifier: Apache-2.0
"""Operators on files of blobs: Save, Load, Checkpoint, DBExists.

Follows caffe2/operators/load_save_op.h, PyTorch 1.8.1. Other than there, a Save that fails leaves
the old file whole, and a Load that fails leaves all blobs as they were.
"""

from __future__ import annotations

import os
from typing import Any

from bridge import c10
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.names import listed
from bridge.caffe2.execution.blob_table import find_or_create
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.files.blob_files import (
    move_contents,
    read_blobs,
    require_names,
    stripped,
    write_blobs,
)
from bridge.caffe2.files.databases import check_type, open_reader
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.datasets.db_readers import FileReader

_DEVICES = ("cpu", "cuda")


class FileOperator(TorchOperator):
    """An operator on database files: type and path."""

    _has_effects = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.absolute = bool(self.GetSingleArgument("absolute_path", 0))
        self.db_type: str = self.GetSingleArgument("db_type", "")

    def strings_of(self, name: str) -> list[str]:
        """Return the strings of argument `name`."""
        return list(self.GetRepeatedArgument(name, ()))

    def require(self, condition: bool, message: str) -> None:
        """Raise EnforceNotMet, also a ValueError, unless `condition` holds."""
        if not condition:
            raise EnforceValueError(message, self._definition.type)

    def path(self, db: str) -> str:
        """Return the path of a file, relative to the workspace's folder unless `absolute_path`."""
        return db if self.absolute else f"{self._workspace._root_folder}/{db}"


@register_operator("Save", devices=_DEVICES, inputs="1-*", outputs="0", gradient="undefined")
class Save(FileOperator):
    """Write the inputs to the new file `db`, of `db_type` ("minidb" or "lmdb").

    Arguments: `blob_name_overrides`: the names in the file; otherwise the names of the blobs, up to
    and including `strip_prefix` removed. `chunk_size` (-1): elements per record; -1: 1,000,000, 0:
    all.
    Raises EnforceNotMet: db or db_type is missing, a blob or name occurs twice, Caffe2 has no
    format for a blob, or the file cannot be written; an existing file is then unchanged.
    Follows SaveOp.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.db: str = self.GetSingleArgument("db", "")
        self.chunk_size: int = self.GetSingleArgument("chunk_size", -1)
        overrides = self.strings_of("blob_name_overrides")
        prefix: str = self.GetSingleArgument("strip_prefix", "")
        inputs = self._definition.inputs
        self.require(bool(self.db), "The argument db is missing, the name of the file.")
        self.require(bool(self.db_type), "The argument db_type is missing: 'minidb' or 'lmdb'.")
        self.require(
            not overrides or len(overrides) == len(inputs),
            f"There are {len(overrides)} blob_name_overrides for {len(inputs)} blobs.",
        )
        self.require(
            not (overrides and prefix), "Set strip_prefix or blob_name_overrides, not both."
        )
        self.names = overrides or [stripped(name, prefix) for name in inputs]
        require_names(self.names, self._definition.type)

    def RunOnDevice(self) -> None:
        self.save(self.db)

    def save(self, db: str) -> None:
        """Write the file `db`."""
        write_blobs(self.path(db), self.db_type, self.names, self.Inputs(), self.chunk_size, "Save")


@register_operator("Checkpoint", devices=_DEVICES, inputs="1-*", outputs="0", gradient="undefined")
@register_operator("Snapshot", devices=_DEVICES, inputs="0-*", outputs="0-*", gradient="undefined")
class Checkpoint(Save):
    """Save, whenever input 0, an int64, is a multiple of `every` (1).

    `db` may have one placeholder for that number, as in "model_%08d.minidb". Follows CheckpointOp.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.every: int = self.GetSingleArgument("every", 1)
        self.require(self.every > 0, f"The argument every must be at least 1, not {self.every}.")
        try:
            self.db % 0 if "%" in self.db else self.db
        except (TypeError, ValueError) as cause:
            raise EnforceValueError(
                f"The argument db, {self.db!r}, may have one placeholder for a number, such as %d.",
                "Checkpoint",
            ) from cause

    def RunOnDevice(self) -> None:
        counted = self.x(0, (c10.int64,))
        if counted.numel() != 1:
            raise EnforceNotMet(f"Input 0 must have one element, not {counted.numel()}.")
        iteration = int(counted)
        if iteration % self.every == 0:
            self.save(self.db % iteration if "%" in self.db else self.db)


@register_operator("Load", devices=_DEVICES, inputs="0-*", outputs="0-*", gradient="none")
class Load(FileOperator):
    """Read the outputs from the file `db`, or the files `dbs`, of `db_type`, or from the inputs.

    Inputs are readers of files, from CreateDB. Caffe2 reads on from where a reader is; here a file
    is read from its start.

    Of the names in the files everything up to `strip_prefix` is removed, then `add_prefix` is
    prepended. The results are matched with the names of the outputs, or with `source_blob_names` in
    their order. With `load_all` every blob of the files is created, among them all outputs. Tensors
    are loaded to the operator's device, with `keep_device` to the one they were saved from. With
    `allow_incomplete` outputs that are not in the files stay unchanged. Files are read until all
    outputs are found.

    Raises EnforceNotMet: arguments contradict each other, a file does not exist or is damaged, a
    blob is in it twice, incompletely, or not at all. All blobs are then unchanged.
    Follows LoadOp.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        outputs = self._definition.outputs
        self.dbs = self.strings_of("dbs") or [self.GetSingleArgument("db", "")]
        if not self._definition.inputs:
            self.require(bool(self.db_type), "The argument db_type is missing: 'minidb' or 'lmdb'.")
            self.require(all(self.dbs), "The argument db is missing, the name of the file.")
            self.require(len(set(self.dbs)) == len(self.dbs), "One file is named twice in dbs.")
        self.strip: str = self.GetSingleArgument("strip_prefix", "")
        self.prefix: str = self.GetSingleArgument("add_prefix", "")
        self.load_all = bool(self.GetSingleArgument("load_all", 0))
        self.keep_device = bool(self.GetSingleArgument("keep_device", 0))
        self.allow_incomplete = bool(self.GetSingleArgument("allow_incomplete", 0))
        names = self.strings_of("source_blob_names")
        self.require(
            not names or len(names) == len(outputs),
            f"There are {len(names)} source_blob_names for {len(outputs)} outputs.",
        )
        self.require(not (names and self.strip), "Set strip_prefix or source_blob_names, not both.")
        self.require(not (names and self.load_all), "Set load_all or source_blob_names, not both.")
        self.names = names or list(outputs)
        self.require(
            self.load_all or len(set(self.names)) == len(self.names),
            f"A blob would be loaded twice: {listed(self.names)}.",
        )

    def RunOnDevice(self) -> None:
        if not self.load_all and not self.names:
            return
        paths, db_type = self.files()
        found = read_blobs(
            paths,
            db_type,
            "Load",
            None if self.load_all else frozenset(self.names),
            lambda name: self.prefix + stripped(name, self.strip),
            None if self.keep_device else self.device,
        )
        missing = [name for name in self.names if name not in found]
        # With load_all all outputs must be in the file despite allow_incomplete, as in Caffe2.
        if missing and (self.load_all or not self.allow_incomplete):
            raise EnforceNotMet(
                f"The file has no {listed(missing)}. allow_incomplete=1 leaves such blobs "
                "unchanged; load_all=1 loads all blobs of the file.",
                "Load",
                condition="all outputs are in the file",
            )
        outputs = dict(zip(self.names, self.Outputs(), strict=True))
        for name, blob in found.items():
            move_contents(outputs.get(name) or find_or_create(self._workspace, name), blob)

    def files(self) -> tuple[list[str], str]:
        """Return the paths of the files, and their type."""
        inputs = range(len(self._definition.inputs))
        if not inputs:
            return [self.path(db) for db in self.dbs], self.db_type
        self.require(
            all(self.InputIsType(i, FileReader) for i in inputs),
            "The inputs of Load are readers of files; use CreateDB to create one.",
        )
        readers: list[FileReader] = [self.Input(i, FileReader) for i in inputs]
        types = sorted({reader.db_type for reader in readers})
        self.require(len(types) == 1, f"The files are of several types: {listed(types)}.")
        return [reader.path for reader in readers], types[0]


@procedure(
    "DBExists",
    _DEVICES,
    inputs="0",
    outputs="1",
    gradient="undefined",
    base=FileOperator,
    effects=True,
)
def db_exists(op: FileOperator) -> None:
    """Whether the database `db_name` of `db_type` exists and can be opened: one bool, 0-d.

    Raises EnforceNotMet: `db_type` is not a type of databases.
    Follows DBExistsOp.
    """
    check_type(op.db_type)
    path = op.path(op.GetSingleArgument("db_name", ""))
    there = os.path.exists(path)
    if there:
        # Opened to raise an error about a file of another kind, which is not hidden here.
        with open_reader(op.db_type, path):
            pass
    op.put_value(0, there, c10.bool)
