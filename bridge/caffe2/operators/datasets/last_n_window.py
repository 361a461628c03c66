# SPDX-License-Identifier: Apache-2.0
"""LastNWindowCollector: a ring of the last rows.

Follows caffe2/operators/last_n_window_collector.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

from bridge import c10
from bridge.caffe2.blobs.objects import Mutex
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.datasets.append import GROWTH, write_rows
from bridge.caffe2.operators.datasets.columns import Column, column_of, require_alike
from bridge.caffe2.tensor.tensor import Tensor


def blank_rows(like: Column, count: int) -> Column:
    """Return `count` rows of zeros, or of default objects, of the type and sizes of `like`."""
    sizes = (count, *like.sizes[1:])
    tensor = Tensor(sizes, "cpu")
    tensor.mutable_data(like.dtype)
    if like.dtype.is_pod:
        operand(tensor).zero_()
    return column_of(tensor, "blank")


@register_operator(
    "LastNWindowCollector",
    inputs="3-5",
    outputs="2-3",
    inplace="0>0!,1>1!,4>2!",
    gradient="undefined",
)
class LastNWindowCollector(TorchOperator):
    """Keep the last `num_to_collect` rows in a ring.

    Inputs: the ring, initially empty or a blob without content; the index of the next row, int32
    without dimensions; the new rows; optionally a mutex and the number of rows received, int64. The
    first, second and last one are the outputs, in place. Caffe2 also takes a ring that begins with
    eight zero bytes for empty; here it is not.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._most = self.GetSingleArgument("num_to_collect", -1)
        require(self._most > 0, f"num_to_collect must be at least 1, not {self._most}.")

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
            require_alike(given, ring.dtype(), ring.sizes())
        place = self._number(1, c10.int32)
        visited = self._number(4, c10.int64) if self.OutputSize() > 2 else 0
        require(
            visited >= 0, f"Input 4, the number of rows received, must not be negative: {visited}."
        )
        visited = (visited if old else 0) + len(given)
        kept = min(len(given), self._most)
        size = max(old, min(self._most, old + kept))
        place = place if old else 0
        if kept:
            require(
                0 <= place < size,
                f"Input 1, the next row, is {place}, out of range for a ring of {size} rows.",
            )
        self._write(given.kept(), kept, place, size, old)
        if self.OutputSize() > 2:
            self.Output(2).mutable_data(c10.int64)[:] = visited

    def _number(self, i: int, dtype: c10.TypeMeta) -> int:
        tensor = self.Input(i)
        fits = tensor.dtype() is dtype and tensor.numel() == 1
        require(fits, f"Input {i} must be one number of type {dtype}.")
        require(i != 1 or tensor.dim() == 0, f"Input {i} must have no dimensions.")
        return int(tensor.data(dtype)[0])

    def _write(self, given: Column, kept: int, place: int, size: int, old: int) -> None:
        """Write the last `kept` rows into the ring of `old` rows, resized to `size`."""
        tensor = self.Output(0)
        if not kept:
            if not old:
                tensor.CopyFrom(self.Input(2))
            return
        if size > old > 0:
            tensor.ExtendTo(size, GROWTH)
            # The index of the next row may lie before rows that were not written yet.
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
