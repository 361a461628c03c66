# SPDX-License-Identifier: Apache-2.0
"""Operators on maps, counters, mutexes, atomic bools, and indexes, which number keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.objects import AtomicBool, Counter, Index, Map, Mutex
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import BOOL, INT32, INT64, INTS, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator("CreateMap", inputs="0", outputs="1")
class CreateMap(TorchOperator):
    """Create an empty map from `key_dtype` to `value_dtype`, int32 (default) or int64."""

    def RunOnDevice(self) -> None:
        types = [
            type_of_argument(self.GetSingleArgument(name, 2), name)
            for name in ("key_dtype", "value_dtype")
        ]
        require(all(one in INTS for one in types), "Keys and values must be int32 or int64.")
        self.OutputBlob(0).Reset(Map(*types))


@register_operator("KeyValueToMap", inputs="2", outputs="1")
class KeyValueToMap(TorchOperator):
    """Create a map from the keys in input 0 to the values in input 1.

    Of equal keys the first one counts.
    """

    def RunOnDevice(self) -> None:
        keys, values = self.integers(0), self.integers(1)
        require(len(keys) == len(values), f"There are {len(keys)} keys, but {len(values)} values.")
        made = Map(self.Input(0).dtype(), self.Input(1).dtype())
        for key, value in zip(keys, values, strict=True):
            made.items.setdefault(key, value)
        self.OutputBlob(0).Reset(made)


@register_operator("MapToKeyValue", inputs="1", outputs="2")
class MapToKeyValue(TorchOperator):
    """The keys of a map and their values, in order of insertion."""

    def RunOnDevice(self) -> None:
        given = self.Input(0, Map)
        self.put(0, torch.tensor(list(given.items), dtype=given.keys.torch))
        self.put(1, torch.tensor(list(given.items.values()), dtype=given.values.torch))


@register_operator("CreateCounter", ("cpu", "cuda"), inputs="0", outputs="1", gradient="undefined")
class CreateCounter(TorchOperator):
    """Create a counter at `init_count` (0)."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(Counter(self.count()))

    def count(self) -> int:
        """Return the argument `init_count`."""
        count: int = self.GetSingleArgument("init_count", 0)
        require(count >= 0, f"init_count must not be negative: {count}.")
        return count


@register_operator("ResetCounter", ("cpu", "cuda"), inputs="1", outputs="0-1", gradient="undefined")
class ResetCounter(CreateCounter):
    """Set a counter to `init_count` (0); optional output 0: its former value."""

    def RunOnDevice(self) -> None:
        before = self.Input(0, Counter).reset(self.count())
        if self.OutputSize():
            self.put_value(0, before, c10.int64)


# How the output is computed, and its type.
_RESULTS: dict[str, tuple[Callable[[Counter], int], TypeMeta]] = {
    "CheckCounterDone": (lambda counter: counter.count <= 0, c10.bool),
    "CountDown": (lambda counter: counter.add(-1) <= 0, c10.bool),
    "CountUp": (lambda counter: counter.add(1), c10.int64),
    "RetrieveCount": (lambda counter: counter.count, c10.int64),
}


@register_operator("CheckCounterDone", ("cpu", "cuda"), inputs="1", outputs="1")
@register_operator("CountDown", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
@register_operator("CountUp", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
@register_operator("RetrieveCount", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
class ReadCounter(TorchOperator):
    """RetrieveCount: the value of a counter; CheckCounterDone: whether it is 0 or less.

    CountUp increments the counter, CountDown decrements it; both then are of its former value.
    """

    def RunOnDevice(self) -> None:
        compute, dtype = _RESULTS[self._definition.type]
        self.put_value(0, compute(self.Input(0, Counter)), dtype)


@register_operator("CreateAtomicBool", inputs="0", outputs="1", gradient="undefined")
@register_operator("CreateMutex", inputs="0", outputs="1", gradient="undefined")
class Create(TorchOperator):
    """Create a mutex, or an atomic bool, False."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(
            Mutex() if self._definition.type == "CreateMutex" else AtomicBool()
        )


@register_operator("AtomicFetchAdd", inputs="3", outputs="2", inplace="1>0", gradient="undefined")
@register_operator("AtomicFetchAdd64", inputs="3", outputs="2", inplace="1>0")
class AtomicFetchAdd(TorchOperator):
    """Add input 2 to input 1, in place, under the mutex in input 0; output 1: the former value.

    The numbers are int32, or int64 for AtomicFetchAdd64.
    """

    def RunOnDevice(self) -> None:
        types = INT64 if self._definition.type.endswith("64") else INT32
        with self.Input(0, Mutex).lock:
            x, added = self.x(1, types), self.x(2, types)
            require(x.numel() > 0 and added.numel() > 0, "Inputs 1 and 2 must not be empty.")
            before = int(x.reshape(-1)[0])
            total = torch.tensor(before, dtype=x.dtype) + added.reshape(-1)[0]
            self.put_value(1, before, types[0])
            self.put_value(0, int(total), types[0])


@register_operator("ConditionalSetAtomicBool", inputs="2", outputs="0", gradient="undefined")
class ConditionalSetAtomicBool(TorchOperator):
    """Set the atomic bool in input 0 to True if input 1 is True."""

    def RunOnDevice(self) -> None:
        held, given = self.Input(0, AtomicBool), self.x(1, BOOL)
        if given.numel() != 1:
            raise EnforceNotMet(f"Input 1 must be one bool, not {given.numel()}.")
        held.value = held.value or bool(given)


@register_operator("CheckAtomicBool", inputs="1", outputs="1", gradient="undefined")
class CheckAtomicBool(TorchOperator):
    """The value of the atomic bool in input 0."""

    def RunOnDevice(self) -> None:
        value = self.Input(0, AtomicBool).value
        self.Output(0, [1], c10.bool).mutable_data()[:] = value


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
