# SPDX-License-Identifier: Apache-2.0
"""Text files with a row per line, whose fields are divided by tabs.

Follows caffe2/operators/text_file_reader.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure

_TYPES = (int(DataType.FLOAT), int(DataType.STRING))


class TextFileReader:
    """The rows of a text file, `passes` times; threads may share it."""

    def __init__(self, path: str = "", passes: int = 1, types: Sequence[int] = ()) -> None:
        self.types = tuple(types)
        self._rows = self._read(path, passes)
        self._lock = threading.Lock()

    def _read(self, path: str, passes: int) -> Iterator[list[bytes]]:
        for _ in range(passes):
            with open(path, "rb") as file:
                for line in file:
                    fields = line.removesuffix(b"\n").split(b"\t")
                    require(
                        len(fields) == len(self.types),
                        f"A line of {path!r} has {len(fields)} fields, not {len(self.types)}: "
                        f"{line[:80]!r}.",
                    )
                    yield fields

    def take(self, count: int) -> list[list[bytes]]:
        """Return up to `count` rows."""
        with self._lock:
            return [row for _, row in zip(range(count), self._rows, strict=False)]


TypeMeta.Register(TextFileReader)


@procedure("CreateTextFileReader", inputs="0", outputs="1", gradient="none")
def create_text_file_reader(op: TorchOperator) -> None:
    """Create a reader of the file `filename`, `num_passes` (1) times.

    `field_types`: for each field FLOAT or STRING of ``core.DataType``. Raises EnforceNotMet: the
    file cannot be opened, there are no fields, or they have another type.
    """
    path = op.GetSingleArgument("filename", "")
    types = op.GetRepeatedArgument("field_types", [0])
    require(bool(types), "field_types must not be empty.")
    require(all(one in _TYPES for one in types), f"Fields are FLOAT or STRING, not {types}.")
    try:
        with open(path, "rb"):
            pass
    except OSError as cause:
        raise EnforceNotMet(f"{path!r} cannot be read: {cause.strerror}.") from cause
    op.OutputBlob(0).Reset(TextFileReader(path, op.GetSingleArgument("num_passes", 1), types))


@procedure("TextFileReaderRead", inputs="1", outputs="1-*", gradient="none", effects=True)
def text_file_reader_read(op: TorchOperator) -> None:
    """Read up to `batch_size` (1) rows; each output has one field of all of them, (rows,).

    Raises EnforceNotMet: the numbers of fields and outputs differ, or a field is not a number.
    """
    reader = op.Input(0, TextFileReader)
    fits = op.OutputSize() == len(reader.types)
    require(fits, f"There are {len(reader.types)} fields and {op.OutputSize()} outputs.")
    rows = reader.take(op.GetSingleArgument("batch_size", 1))
    columns = list(zip(*rows, strict=True)) or [()] * len(reader.types)
    found: list[Any] = []
    for kind, column in zip(reader.types, columns, strict=True):
        if kind == int(DataType.STRING):
            found.append(column)
            continue
        try:
            numbers = [float(text) for text in column]
        except ValueError as cause:
            raise EnforceNotMet(f"A field is not a number: {cause}.") from cause
        found.append(torch.tensor(numbers, dtype=torch.float32, device="cpu"))
    for o, column in enumerate(found):
        if isinstance(column, tuple):
            op.Output(o).Resize([len(column)])
            op.Output(o).mutable_data(c10.string)[:] = list(column)
        else:
            op.put(o, column)
