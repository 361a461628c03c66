# SPDX-License-Identifier: Apache-2.0
"""Rows appended to tensors in place, and rows cut off or overwritten there.

Follows caffe2/operators/dataset_ops.cc and last_n_window_collector.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.blobs.objects import Mutex
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.execution.torch_io import operand
from bridge.caffe2.operators.base.torch_operator import enforce
from bridge.caffe2.operators.datasets.columns import Column, column_of
from bridge.caffe2.operators.datasets.dataset import OfColumns
from bridge.caffe2.operators.datasets.tree_cursor import Dataset
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []

_GROWTH = 40  # percent of spare rows where an append has to reallocate


def write_rows(tensor: Tensor, start: int, column: Column) -> None:
    """Overwrite the rows of `tensor` from `start` on, which are there and of the column's type."""
    if not len(column.items):
        return
    first = start * column.inner
    last = first + len(column) * column.inner
    if column.dtype.is_pod:
        operand(tensor).view(-1)[first:last].copy_(column.items)
    else:
        tensor.mutable_data(column.dtype)[first:last] = list(column.items)


def append_rows(tensor: Tensor, more: Column) -> None:
    """Put rows of the type and sizes of those of `tensor` after them; in place where room is."""
    rows = tensor.size(0)
    tensor.Extend(len(more), _GROWTH)
    write_rows(tensor, rows, more)


def blank_rows(like: Column, count: int) -> Column:
    """Return rows of zeros, or of objects as they are at first, that go with the rows of `like`."""
    sizes = (count, *like.sizes[1:])
    tensor = Tensor(sizes, "cpu")
    tensor.mutable_data(like.dtype)
    if like.dtype.is_pod:
        operand(tensor).zero_()
    return column_of(tensor, "blank")


class _Append(OfColumns):
    """Rows appended to outputs that are inputs."""

    def check_rows(self, i: int, j: int) -> None:
        """Raise EnforceNotMet unless the rows of input `j` go after those of input `i`."""
        before, more = self.Input(i), self.Input(j)
        enforce(more.dim() >= 1, f"Input {j} is a number, and has no rows.")
        if self._is_new(before):
            return
        enforce(
            before.dim() == more.dim() and list(before.sizes())[1:] == list(more.sizes())[1:],
            f"Rows of sizes {list(more.sizes())[1:]} do not go after rows of "
            f"{list(before.sizes())[1:]}.",
        )
        enforce(
            before.dtype() == more.dtype(), f"{more.dtype()} does not go after {before.dtype()}."
        )

    def append(self, i: int, j: int, o: int) -> None:
        """Have output `o`, which is input `i`, hold the rows of input `j`, too."""
        more = column_of(self.Input(j), f"Input {j}").kept()
        tensor = self.Output(o)
        if self._is_new(tensor):
            tensor.CopyFrom(self.Input(j))
            return
        append_rows(tensor, more)

    @staticmethod
    def _is_new(tensor: Tensor) -> bool:
        return tensor.dim() > 0 and tensor.size(0) == 0


@register_operator("Append")
class Append(_Append):
    """The rows of input 1 after those of input 0, which is the output."""

    def RunOnDevice(self) -> None:
        self.check_rows(0, 1)
        self.append(0, 1, 0)


@register_operator("AtomicAppend")
class AtomicAppend(_Append):
    """Append, several times. Inputs: a mutex, the tensors, which are the outputs, the rows."""

    def RunOnDevice(self) -> None:
        with self.Input(0, Mutex).lock:
            self._append_all()

    def _append_all(self) -> None:
        n = (self.InputSize() - 1) // 2
        enforce(self.OutputSize() == n, f"{n} tensors are appended to, not {self.OutputSize()}.")
        for o in range(n):
            if not self._is_new(self.Input(1 + o)):
                enforce(self.IsInputOutputAlias(1 + o, o), f"Output {o} has to be input {1 + o}.")
            self.check_rows(1 + o, 1 + n + o)
        for o in range(n):
            self.append(1 + o, 1 + n + o, o)


@register_operator("TrimDataset")
class TrimDataset(OfColumns):
    """The last records cut off, so that their number is a multiple of `multiple_of` (1)."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._fields = self.fields()
        self._multiple = self.GetSingleArgument("multiple_of", 1)
        enforce(self._multiple >= 1, f"multiple_of is 1 or more, not {self._multiple}.")

    def RunOnDevice(self) -> None:
        dataset = Dataset(self._fields, self.columns())
        n = dataset.limits[0] // self._multiple * self._multiple
        if n == dataset.limits[0]:
            return
        sizes = dataset.sizes([0] * self._fields.n_domains, n)
        enforce(self.OutputSize() == len(dataset.columns), "There is an output for each column.")
        for o, domain in enumerate(self._fields.domains):
            self.Output(o).ShrinkTo(sizes[domain])


@register_operator("LastNWindowCollector")
class LastNWindowCollector(OfColumns):
    """The last `num_to_collect` rows that came, in a ring.

    Inputs: the ring, empty or a blob that holds nothing at first; where the next row goes, int32
    without dimensions; the rows; a mutex; how many rows came, int64. The first, second and last
    are the outputs.

    To Caffe2 a ring that begins with eight bytes of zero is empty, too; here it is not.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._most = self.GetSingleArgument("num_to_collect", -1)
        enforce(self._most > 0, f"num_to_collect is 1 or more, not {self._most}.")

    def RunOnDevice(self) -> None:
        if self.InputSize() > 3:
            with self.Input(3, Mutex).lock:
                self._collect()
        else:
            self._collect()

    def _collect(self) -> None:
        ring, given = self.Output(0), column_of(self.Input(2), "Input 2")
        old = ring.size(0) if ring.numel() else 0
        if old:
            now = column_of(ring, "Input 0")
            enforce(
                now.dtype is given.dtype and now.sizes[1:] == given.sizes[1:],
                f"Rows of {given.dtype} of sizes {list(given.sizes[1:])} do not go among rows of "
                f"{now.dtype} of sizes {list(now.sizes[1:])}.",
            )
        place = self._number(1, c10.int32)
        visited = self._number(4, c10.int64) if self.OutputSize() > 2 else 0
        enforce(visited >= 0, f"Input 4 says that {visited} rows came.")
        visited = (visited if old else 0) + len(given)
        kept = min(len(given), self._most)
        size = max(old, min(self._most, old + kept))
        place = place if old else 0
        if kept:
            enforce(0 <= place < size, f"Input 1 is {place}, and the ring has {size} rows.")
        self._write(given.kept(), kept, place, size, old)
        if self.OutputSize() > 2:
            self.Output(2).mutable_data(c10.int64)[:] = visited

    def _number(self, i: int, dtype: c10.TypeMeta) -> int:
        tensor = self.Input(i)
        enforce(
            tensor.dtype() is dtype and tensor.numel() == 1,
            f"Input {i} is one number of {dtype}.",
        )
        enforce(i != 1 or tensor.dim() == 0, f"Input {i} has no dimensions.")
        return int(tensor.data(dtype)[0])

    def _write(self, given: Column, kept: int, place: int, size: int, old: int) -> None:
        """Write the last `kept` rows into the ring of `old` rows, which gets `size`."""
        tensor = self.Output(0)
        if not kept:
            if not old:
                tensor.CopyFrom(self.Input(2))
            return
        if size > old > 0:
            tensor.ExtendTo(size, _GROWTH)
            # Where the next row goes may lie before rows that nobody wrote yet.
            write_rows(tensor, old, blank_rows(given, size - old))
        elif not old:
            tensor.Resize((size, *given.sizes[1:]))
            tensor.raw_mutable_data(given.dtype)
        if len(given) > self._most:
            place = 0
        rows = given.rows(len(given) - kept, kept)
        first = min(kept, self._most - place)
        write_rows(tensor, place, rows.rows(0, first))
        write_rows(tensor, 0, rows.rows(first, kept - first))
        after = 0 if len(given) > self._most else (place + kept) % self._most
        self.Output(1).mutable_data(c10.int32)[:] = after
