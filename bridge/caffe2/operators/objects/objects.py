# SPDX-License-Identifier: Apache-2.0
"""Operators on blobs that hold objects: counters, maps, mutexes, truth values."""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.objects import AtomicBool, Counter, Map, Mutex
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import (
    BOOL,
    INT32,
    INT64,
    INTS,
    TorchOperator,
    enforce,
)


@register_operator("CreateCounter")
class CreateCounter(TorchOperator):
    """A counter at `init_count` (0)."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(Counter(self.count()))

    def count(self) -> int:
        """Return the argument."""
        count: int = self.GetSingleArgument("init_count", 0)
        enforce(count >= 0, f"init_count is not negative, as {count}.")
        return count


@register_operator("ResetCounter")
class ResetCounter(CreateCounter):
    """A counter put to `init_count` (0); output 0 gets what it was."""

    def RunOnDevice(self) -> None:
        before = self.Input(0, Counter).reset(self.count())
        if self.OutputSize():
            self.put_value(0, before, c10.int64)


@register_operator("CountDown")
class CountDown(TorchOperator):
    """A counter less 1; whether it was 0 or less before."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).add(-1) <= 0, c10.bool)


@register_operator("CountUp")
class CountUp(TorchOperator):
    """A counter and 1; what it was before."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).add(1), c10.int64)


@register_operator("CheckCounterDone")
class CheckCounterDone(TorchOperator):
    """Whether a counter is 0 or less."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).count <= 0, c10.bool)


@register_operator("RetrieveCount")
class RetrieveCount(TorchOperator):
    """What a counter is."""

    def RunOnDevice(self) -> None:
        self.put_value(0, self.Input(0, Counter).count, c10.int64)


@register_operator("CreateMap")
class CreateMap(TorchOperator):
    """An empty map from `key_dtype` to `value_dtype`, int32 or int64."""

    def RunOnDevice(self) -> None:
        types = [
            type_of_argument(self.GetSingleArgument(name, 2), name)
            for name in ("key_dtype", "value_dtype")
        ]
        enforce(all(one in INTS for one in types), "Keys and values are int32 or int64.")
        self.OutputBlob(0).Reset(Map(*types))


@register_operator("KeyValueToMap")
class KeyValueToMap(TorchOperator):
    """A map of the keys of input 0 to the values of input 1; the first of a key counts."""

    def RunOnDevice(self) -> None:
        keys, values = self.integers(0), self.integers(1)
        enforce(len(keys) == len(values), f"{len(keys)} keys are given {len(values)} values.")
        made = Map(self.Input(0).dtype(), self.Input(1).dtype())
        for key, value in zip(keys, values, strict=True):
            made.items.setdefault(key, value)
        self.OutputBlob(0).Reset(made)


@register_operator("MapToKeyValue")
class MapToKeyValue(TorchOperator):
    """The keys of a map and their values, in the order in which they came."""

    def RunOnDevice(self) -> None:
        given = self.Input(0, Map)
        self.put(0, torch.tensor(list(given.items), dtype=given.keys.torch))
        self.put(1, torch.tensor(list(given.items.values()), dtype=given.values.torch))


@register_operator("CreateMutex")
class CreateMutex(TorchOperator):
    """A mutex."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(Mutex())


class _FetchAdd(TorchOperator):
    """Inputs 1 and 2 added up in place of input 1; output 1 gets what that was."""

    types = INT32

    def RunOnDevice(self) -> None:
        with self.Input(0, Mutex).lock:
            x, added = self.x(1, self.types), self.x(2, self.types)
            enforce(x.numel() > 0 and added.numel() > 0, "There is nothing to add.")
            before = int(x.reshape(-1)[0])
            total = torch.tensor(before, dtype=x.dtype) + added.reshape(-1)[0]
            self.put_value(1, before, self.types[0])
            self.put_value(0, int(total), self.types[0])


@register_operator("AtomicFetchAdd")
class AtomicFetchAdd(_FetchAdd):
    """The same of int32."""


@register_operator("AtomicFetchAdd64")
class AtomicFetchAdd64(_FetchAdd):
    """The same of int64."""

    types = INT64


@register_operator("CreateAtomicBool")
class CreateAtomicBool(TorchOperator):
    """A truth value, false."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(AtomicBool())


@register_operator("ConditionalSetAtomicBool")
class ConditionalSetAtomicBool(TorchOperator):
    """The truth value of input 0 made true, if input 1 is."""

    def RunOnDevice(self) -> None:
        held, given = self.Input(0, AtomicBool), self.x(1, BOOL)
        if given.numel() != 1:
            raise EnforceNotMet(f"Input 1 is one truth value, and has {given.numel()}.")
        held.value = held.value or bool(given)


@register_operator("CheckAtomicBool")
class CheckAtomicBool(TorchOperator):
    """What the truth value of input 0 is."""

    def RunOnDevice(self) -> None:
        value = self.Input(0, AtomicBool).value
        self.Output(0, [1], c10.bool).mutable_data()[:] = value
