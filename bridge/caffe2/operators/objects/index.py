# SPDX-License-Identifier: Apache-2.0
"""Operators on indexes: consecutive numbers for keys."""

from __future__ import annotations

from typing import Any

import torch

from bridge import c10
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.blobs.objects import Index
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator

_KEYS = {"IntIndexCreate": c10.int32, "LongIndexCreate": c10.int64, "StringIndexCreate": c10.string}


@register_operator("IntIndexCreate", inputs="0", outputs="1", gradient="none")
@register_operator("LongIndexCreate", inputs="0", outputs="1", gradient="none")
@register_operator("StringIndexCreate", inputs="0", outputs="1", gradient="none")
class IndexCreate(TorchOperator):
    """Create an index of at most `max_elements` - 1 keys: int32, int64 or strings."""

    def RunOnDevice(self) -> None:
        most = self.GetSingleArgument("max_elements", 2**31 - 1)
        self.OutputBlob(0).Reset(Index(_KEYS[self._definition.type], most))


class _OfIndex(TorchOperator):
    """An operator on the index in input 0."""

    def keys(self) -> list[Any]:
        """Return the keys in input 1. Raises EnforceNotMet: their type is not the index's."""
        index = self.Input(0, Index)
        given = self.Input(1).dtype()
        if given is not index.dtype:
            raise EnforceValueError(f"The index has keys of type {index.dtype}, not {given}.")
        if given is c10.string:
            return self.strings(1)
        return self.x(1).reshape(-1).tolist()


@register_operator("IndexGet", inputs="2", outputs="1")
class IndexGet(_OfIndex):
    """The numbers of keys; new keys get new numbers, or 0 if the index is frozen."""

    def RunOnDevice(self) -> None:
        index, keys = self.Input(0, Index), self.keys()
        with index.lock:
            places = index.places
            if not index.frozen:
                new = [key for key in dict.fromkeys(keys) if key not in places]
                require(not new or len(places) + len(new) < index.most, "The index is full.")
                places.update((key, i) for i, key in enumerate(new, len(places) + 1))
            numbers = [places.get(key, 0) for key in keys]
        found = torch.tensor(numbers, dtype=torch.int64)
        self.put(0, found.reshape(torch.Size(self.Input(1).sizes())))


@register_operator("IndexLoad", inputs="2", outputs="1", inplace="0>0!", gradient="undefined")
class IndexLoad(_OfIndex):
    """Set the keys of the index to input 1, with `skip_first_entry` without the first one."""

    def RunOnDevice(self) -> None:
        index, keys = self.Input(0, Index), self.keys()
        if self.GetSingleArgument("skip_first_entry", 0):
            require(bool(keys), "There must be a first key to skip.")
            keys = keys[1:]
        require(
            len(keys) <= index.most, f"{len(keys)} keys are more than the maximum of the index."
        )
        require(len(set(keys)) == len(keys), "The keys must be different.")
        index.places = {key: i for i, key in enumerate(keys, 1)}


@register_operator("IndexStore", inputs="1", outputs="1", gradient="undefined")
class IndexStore(_OfIndex):
    """The keys in the order of their numbers."""

    def RunOnDevice(self) -> None:
        index = self.Input(0, Index)
        keys = list(index.places)
        if index.dtype is c10.string:
            self.put_strings(0, [len(keys)], keys)
        else:
            self.put(0, torch.tensor(keys, dtype=index.dtype.torch))


@register_operator("IndexFreeze", inputs="1", outputs="1", inplace="0>0!", gradient="undefined")
class IndexFreeze(_OfIndex):
    """Freeze the index: it accepts no new keys."""

    def RunOnDevice(self) -> None:
        self.Input(0, Index).frozen = True


@register_operator("IndexSize", inputs="1", outputs="1", gradient="undefined")
class IndexSize(_OfIndex):
    """The number of keys, plus one for unknown keys."""

    def RunOnDevice(self) -> None:
        size = len(self.Input(0, Index).places) + 1
        self.put_value(0, size, c10.int64)
