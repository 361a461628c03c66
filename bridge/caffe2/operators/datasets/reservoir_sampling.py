# SPDX-License-Identifier: Apache-2.0
"""ReservoirSampling: a random sample of all rows that were seen.

Follows caffe2/operators/reservoir_sampling.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge import c10
from bridge.caffe2.blobs.objects import Map, Mutex, Record
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator(
    "ReservoirSampling",
    inputs="4|7",
    outputs="2|4",
    inplace="0>0!,1>1!,5>2!,6>3!",
    gradient="undefined",
)
class ReservoirSampling(TorchOperator):
    """Keep `num_to_collect` rows of all data, each as likely as the others.

    Inputs: the reservoir, empty at first, or read from a file without what its records held; the
    number of rows seen, int64; data; a mutex. Optionally the ids of the data's rows, of which each
    is kept once, a map of ids to places, and the ids in the reservoir. Outputs: the reservoir, the
    number, and optionally the map and the ids, in place.
    """

    _has_effects = True

    def RunOnDevice(self) -> None:
        with self.Input(3, Mutex).lock:
            self._collect(self.Input(2), self.GetSingleArgument("num_to_collect", -1))

    def _rows(self, tensor: Any) -> list[Any]:
        """Return a copy of the rows, as tensors, or lists of objects such as strings."""
        kind = tensor.dtype()
        if not kind or kind.is_pod:
            return list(operand(tensor).clone())
        items, count = list(tensor.data(kind)[:]), tensor.sizes()[0]
        width = len(items) // max(count, 1)
        return [items[i * width : (i + 1) * width] for i in range(count)]

    def _put_rows(self, rows: list[Any], like: Any) -> None:
        """Set the reservoir to rows; `like`: the data, which have their type and sizes."""
        kind = like.dtype()
        if kind.is_pod:
            self.put(0, torch.stack(rows) if rows else operand(like)[:0].clone())
            return
        output = self.Output(0)
        output.Resize([len(rows), *like.sizes()[1:]])
        output.mutable_data(kind)[:] = [item for row in rows for item in row]

    def _collect(self, data: Any, most: int) -> None:
        require(most > 0, f"num_to_collect is positive, not {most}.")
        sizes = list(data.sizes())
        require(len(sizes) >= 1, "The data have at least one dimension.")
        reservoir = self.Input(0)
        is_new = _is_new(reservoir)
        seen = self.Input(1)
        require(seen.numel() == 1, "The number of rows seen is one int64.")
        count = 0 if is_new else int(self.x(1, (c10.int64,)).reshape(-1)[0])
        fits = is_new or (
            list(reservoir.sizes())[1:] == sizes[1:] and reservoir.dtype() == data.dtype()
        )
        require(fits, f"The data of sizes {sizes} do not fit the reservoir.")
        rows = [] if is_new else self._rows(reservoir)
        ids = self.integers(4, (c10.int64,)) if self.InputSize() > 4 else None
        places = self.Input(5, Map) if ids is not None else None
        kept = [] if is_new or ids is None else self.integers(6, (c10.int64,))
        known = {} if is_new or places is None else dict(places.items)
        for i, row in enumerate(self._rows(data)):
            if ids is not None and ids[i] in known:
                continue
            place = count
            if count >= most:
                place = int(torch.randint(0, count + 1, (), device="cpu"))
            count += 1
            if place >= most:
                continue
            if place < len(rows):
                rows[place] = row
                if ids is not None:
                    del known[kept[place]]
                    kept[place] = ids[i]
            else:
                rows.append(row)
                kept += [] if ids is None else [ids[i]]
            if ids is not None:
                known[ids[i]] = place
        self._put_rows(rows, data)
        self.put(1, torch.tensor([count], dtype=torch.int64, device="cpu").view(list(seen.sizes())))
        if places is not None:
            places.items = known
            self.put(3, torch.tensor(kept, dtype=torch.int64, device="cpu"))


def _is_new(reservoir: Any) -> bool:
    """Return whether a reservoir has no rows yet."""
    if not reservoir.storage_initialized() or not reservoir.numel():
        return True
    kind = reservoir.dtype()
    return kind == c10.TypeMeta.Make(Record) and reservoir.data(kind)[0].columns is None
