# SPDX-License-Identifier: Apache-2.0
"""Operators on files of blobs: Save, Load, Checkpoint, DBExists.

Follows caffe2/operators/load_save_op.h, PyTorch 1.8.1. Other than there, a Save that fails leaves
the old file whole, and a Load that fails leaves all blobs as they were.
"""

from __future__ import annotations

import os

from bridge import c10
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.text import listed
from bridge.caffe2.execution.blob_table import find_or_create
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.files.blob_files import hold, read_blobs, require_names, stripped, write_blobs
from bridge.caffe2.files.databases import check_type, open_reader
from bridge.caffe2.operators.base.torch_operator import TorchOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Checkpoint", "DBExists", "Load", "Save"]

_DEVICES = ("cpu", "cuda")


class FileOperator(TorchOperator):
    """What they have in common: the kind of file, and where it is."""

    _has_effects = True

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.absolute = bool(self.GetSingleArgument("absolute_path", 0))
        self.db_type: str = self.GetSingleArgument("db_type", "")

    def strings_of(self, name: str) -> list[str]:
        """Return the values of an argument, which are strings."""
        return list(self.GetRepeatedArgument(name, ()))

    def require(self, condition: bool, message: str) -> None:
        """Refuse what does not meet the condition. Raises EnforceNotMet, also a ValueError."""
        if not condition:
            raise EnforceValueError(message, self._definition.type)

    def path(self, db: str) -> str:
        """Return the path of a file, in the workspace's folder unless `absolute_path` is set."""
        return db if self.absolute else f"{self._workspace._root_folder}/{db}"


@register_operator("Save", devices=_DEVICES)
class Save(FileOperator):
    """Write the inputs to the new file `db`, of `db_type` ("minidb" or "lmdb").

    `blob_name_overrides`: the names in the file; else those of the blobs, `strip_prefix` and what
    is before it taken away. `chunk_size`: elements in one record; -1 (default): 1,000,000, 0: all.

    Raises EnforceNotMet: no db or db_type, a blob or name twice, a blob that Caffe2 has no form
    for, or the file cannot be written, which is then as it was before. Follows SaveOp.
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
            not (overrides and prefix), "Give strip_prefix or blob_name_overrides, not both."
        )
        self.names = overrides or [stripped(name, prefix) for name in inputs]
        require_names(self.names, self._definition.type)

    def RunOnDevice(self) -> None:
        self.save(self.db)

    def save(self, db: str) -> None:
        """Write the file `db`."""
        write_blobs(self.path(db), self.db_type, self.names, self.Inputs(), self.chunk_size, "Save")


@register_operator("Checkpoint", devices=_DEVICES)
@register_operator("Snapshot", devices=_DEVICES)
class Checkpoint(Save):
    """Save, whenever input 0, an int64, is a multiple of `every` (1).

    `db` may have one place for that number, such as "model_%08d.minidb". Follows CheckpointOp.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.every: int = self.GetSingleArgument("every", 1)
        self.require(self.every > 0, f"The argument every is 1 or more, not {self.every}.")
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


@register_operator("Load", devices=_DEVICES)
class Load(FileOperator):
    """Read the outputs from the file `db`, or the files `dbs`, of `db_type`.

    Names in the files have `strip_prefix`, and what is before it, taken away, and `add_prefix` put
    before them; they are then those of the outputs, or the `source_blob_names` in their order. With
    `load_all` every blob of the files is made, the outputs among them. Tensors go to the operator's
    device, with `keep_device` to the one where they were. `allow_incomplete`: outputs that are not
    in the files stay what they are. Files are read until all outputs are there.

    Raises EnforceNotMet: arguments contradict each other, a file is not there or is damaged, a blob
    is in it twice, not all there, or not at all. All blobs are then as they were before. Follows
    LoadOp; there is no DBReader here to load from.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        outputs = self._definition.outputs
        self.require(
            not self._definition.inputs, "Load reads files, by db or dbs, and takes no inputs."
        )
        self.require(bool(self.db_type), "The argument db_type is missing: 'minidb' or 'lmdb'.")
        self.dbs = self.strings_of("dbs") or [self.GetSingleArgument("db", "")]
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
        self.require(
            not (names and self.strip), "Give strip_prefix or source_blob_names, not both."
        )
        self.require(not (names and self.load_all), "Give load_all or source_blob_names, not both.")
        self.names = names or list(outputs)
        self.require(
            self.load_all or len(set(self.names)) == len(self.names),
            f"A blob is to be loaded twice: {listed(self.names)}.",
        )

    def RunOnDevice(self) -> None:
        if not self.load_all and not self.names:
            return
        found = read_blobs(
            [self.path(db) for db in self.dbs],
            self.db_type,
            "Load",
            None if self.load_all else frozenset(self.names),
            lambda name: self.prefix + stripped(name, self.strip),
            None if self.keep_device else self.device,
        )
        missing = [name for name in self.names if name not in found]
        # With load_all all outputs have to be there, whatever allow_incomplete says, as in Caffe2.
        if missing and (self.load_all or not self.allow_incomplete):
            raise EnforceNotMet(
                f"The file has no {listed(missing)}. allow_incomplete=1 leaves such blobs as they "
                "are; load_all=1 loads all that there is.",
                "Load",
                condition="all outputs are in the file",
            )
        outputs = dict(zip(self.names, self.Outputs(), strict=True))
        for name, blob in found.items():
            hold(outputs.get(name) or find_or_create(self._workspace, name), blob)


@register_operator("DBExists", devices=_DEVICES)
class DBExists(FileOperator):
    """Whether there is a database `db_name` of `db_type` that can be opened: one bool, no sizes.

    Raises EnforceNotMet: there are no databases of that type. Follows DBExistsOp.
    """

    def RunOnDevice(self) -> None:
        check_type(self.db_type)
        path = self.path(self.GetSingleArgument("db_name", ""))
        there = os.path.exists(path)
        if there:
            # Of what kind it is, if any: an error about that is not for this operator to hide.
            with open_reader(self.db_type, path):
                pass
        self.put_value(0, there, c10.bool)
