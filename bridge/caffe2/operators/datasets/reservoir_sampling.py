# SPDX-License-Identifier: Apache-2.0
"""ReservoirSampling: a random sample of all rows that were seen.

Follows caffe2/operators/reservoir_sampling.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge import c10
from bridge.caffe2.blobs.objects import Map, Mutex, Record
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.datasets.columns import (
    Column,
    column_of,
    joined,
    put_column,
)


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

    def _collect(self, data: Any, most: int) -> None:
        require(most > 0, f"num_to_collect is positive, not {most}.")
        given = column_of(data, "Input 2").kept()
        reservoir = self.Input(0)
        is_new = _is_new(reservoir)
        seen = self.Input(1)
        require(seen.numel() == 1, "The number of rows seen is one int64.")
        count = 0 if is_new else int(self.x(1, (c10.int64,)).reshape(-1)[0])
        like = given.dtype, given.sizes[1:]
        fits = is_new or (reservoir.dtype(), tuple(reservoir.sizes()[1:])) == like
        require(fits, f"The data of sizes {list(given.sizes)} do not fit the reservoir.")
        rows = [] if is_new else _rows(column_of(reservoir, "Input 0").kept())
        ids = self.integers(4, (c10.int64,)) if self.InputSize() > 4 else None
        places = self.Input(5, Map) if ids is not None else None
        kept = [] if is_new or ids is None else self.integers(6, (c10.int64,))
        known = {} if is_new or places is None else dict(places.items)
        for i, row in enumerate(_rows(given)):
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
        put_column(self, 0, joined([given.rows(0, 0), *rows]))
        self.put(1, torch.tensor([count], dtype=torch.int64, device="cpu").view(list(seen.sizes())))
        if places is not None:
            places.items = known
            self.put(3, torch.tensor(kept, dtype=torch.int64, device="cpu"))


def _rows(column: Column) -> list[Column]:
    return [column.rows(i, 1) for i in range(len(column))]


def _is_new(reservoir: Any) -> bool:
    """Return whether a reservoir has no rows yet."""
    if not reservoir.storage_initialized() or not reservoir.numel():
        return True
    kind = reservoir.dtype()
    return kind == c10.TypeMeta.Make(Record) and reservoir.data(kind)[0].columns is None
