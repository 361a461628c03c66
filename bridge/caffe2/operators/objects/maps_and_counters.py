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
from bridge.caffe2.operators.base.checks import BOOL, INT32, INT64, INTS, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure


@procedure("CreateMap", inputs="0", outputs="1")
def create_map(op: TorchOperator) -> None:
    """Create an empty map from `key_dtype` to `value_dtype`, int32 (default) or int64."""
    types = [
        type_of_argument(op.GetSingleArgument(name, 2), name)
        for name in ("key_dtype", "value_dtype")
    ]
    require(all(one in INTS for one in types), "Keys and values must be int32 or int64.")
    op.OutputBlob(0).Reset(Map(*types))


@procedure("KeyValueToMap", inputs="2", outputs="1")
def key_value_to_map(op: TorchOperator) -> None:
    """Create a map from the keys in input 0 to the values in input 1.

    Of equal keys the first one counts.
    """
    keys, values = op.integers(0), op.integers(1)
    require(len(keys) == len(values), f"There are {len(keys)} keys, but {len(values)} values.")
    made = Map(op.Input(0).dtype(), op.Input(1).dtype())
    for key, value in zip(keys, values, strict=True):
        made.items.setdefault(key, value)
    op.OutputBlob(0).Reset(made)


@procedure("MapToKeyValue", inputs="1", outputs="2")
def map_to_key_value(op: TorchOperator) -> None:
    """The keys of a map and their values, in order of insertion."""
    given = op.Input(0, Map)
    op.put(0, torch.tensor(list(given.items), dtype=given.keys.torch))
    op.put(1, torch.tensor(list(given.items.values()), dtype=given.values.torch))


def _init_count(op: TorchOperator) -> int:
    count: int = op.GetSingleArgument("init_count", 0)
    require(count >= 0, f"init_count must not be negative: {count}.")
    return count


@procedure("CreateCounter", ("cpu", "cuda"), inputs="0", outputs="1", gradient="undefined")
def create_counter(op: TorchOperator) -> None:
    """Create a counter at `init_count` (0)."""
    op.OutputBlob(0).Reset(Counter(_init_count(op)))


@procedure("ResetCounter", ("cpu", "cuda"), inputs="1", outputs="0-1", gradient="undefined")
def reset_counter(op: TorchOperator) -> None:
    """Set a counter to `init_count` (0); optional output 0: its former value."""
    before = op.Input(0, Counter).reset(_init_count(op))
    if op.OutputSize():
        op.put_value(0, before, c10.int64)


# How the output is computed, and its type.
_RESULTS: dict[str, tuple[Callable[[Counter], int], TypeMeta]] = {
    "CheckCounterDone": (lambda counter: counter.count <= 0, c10.bool),
    "CountDown": (lambda counter: counter.add(-1) <= 0, c10.bool),
    "CountUp": (lambda counter: counter.add(1), c10.int64),
    "RetrieveCount": (lambda counter: counter.count, c10.int64),
}


@procedure("CheckCounterDone", ("cpu", "cuda"), inputs="1", outputs="1")
@procedure("CountDown", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
@procedure("CountUp", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
@procedure("RetrieveCount", ("cpu", "cuda"), inputs="1", outputs="1", gradient="undefined")
def read_counter(op: TorchOperator) -> None:
    """RetrieveCount: the value of a counter; CheckCounterDone: whether it is 0 or less.

    CountUp increments the counter, CountDown decrements it; both then are of its former value.
    """
    compute, dtype = _RESULTS[op._definition.type]
    op.put_value(0, compute(op.Input(0, Counter)), dtype)


@procedure("CreateAtomicBool", inputs="0", outputs="1", gradient="undefined")
@procedure("CreateMutex", inputs="0", outputs="1", gradient="undefined")
def create(op: TorchOperator) -> None:
    """Create a mutex, or an atomic bool, False."""
    op.OutputBlob(0).Reset(Mutex() if op._definition.type == "CreateMutex" else AtomicBool())


@procedure("AtomicFetchAdd", inputs="3", outputs="2", inplace="1>0", gradient="undefined")
@procedure("AtomicFetchAdd64", inputs="3", outputs="2", inplace="1>0")
def atomic_fetch_add(op: TorchOperator) -> None:
    """Add input 2 to input 1, in place, under the mutex in input 0; output 1: the former value.

    The numbers are int32, or int64 for AtomicFetchAdd64.
    """
    types = INT64 if op._definition.type.endswith("64") else INT32
    with op.Input(0, Mutex).lock:
        x, added = op.x(1, types), op.x(2, types)
        require(x.numel() > 0 and added.numel() > 0, "Inputs 1 and 2 must not be empty.")
        before = int(x.reshape(-1)[0])
        total = torch.tensor(before, dtype=x.dtype) + added.reshape(-1)[0]
        op.put_value(1, before, types[0])
        op.put_value(0, int(total), types[0])


@procedure("ConditionalSetAtomicBool", inputs="2", outputs="0", gradient="undefined")
def conditional_set_atomic_bool(op: TorchOperator) -> None:
    """Set the atomic bool in input 0 to True if input 1 is True."""
    held, given = op.Input(0, AtomicBool), op.x(1, BOOL)
    if given.numel() != 1:
        raise EnforceNotMet(f"Input 1 must be one bool, not {given.numel()}.")
    held.value = held.value or bool(given)


@procedure("CheckAtomicBool", inputs="1", outputs="1", gradient="undefined")
def check_atomic_bool(op: TorchOperator) -> None:
    """The value of the atomic bool in input 0."""
    value = op.Input(0, AtomicBool).value
    op.Output(0, [1], c10.bool).mutable_data()[:] = value


_KEYS = {"IntIndexCreate": c10.int32, "LongIndexCreate": c10.int64, "StringIndexCreate": c10.string}


@procedure("IntIndexCreate", inputs="0", outputs="1", gradient="none")
@procedure("LongIndexCreate", inputs="0", outputs="1", gradient="none")
@procedure("StringIndexCreate", inputs="0", outputs="1", gradient="none")
def index_create(op: TorchOperator) -> None:
    """Create an index of at most `max_elements` - 1 keys: int32, int64 or strings."""
    most = op.GetSingleArgument("max_elements", 2**31 - 1)
    op.OutputBlob(0).Reset(Index(_KEYS[op._definition.type], most))


def _keys(op: TorchOperator) -> list[Any]:
    """Return the keys in input 1. Raises EnforceNotMet: their type is not that of the index."""
    index, given = op.Input(0, Index), op.Input(1).dtype()
    if given is not index.dtype:
        raise EnforceValueError(f"The index has keys of type {index.dtype}, not {given}.")
    return op.strings(1) if given is c10.string else op.x(1).reshape(-1).tolist()


@procedure("IndexGet", inputs="2", outputs="1")
def index_get(op: TorchOperator) -> None:
    """The numbers of keys; new keys get new numbers, or 0 if the index is frozen."""
    index, keys = op.Input(0, Index), _keys(op)
    with index.lock:
        places = index.places
        if not index.frozen:
            new = [key for key in dict.fromkeys(keys) if key not in places]
            require(not new or len(places) + len(new) < index.most, "The index is full.")
            places.update((key, i) for i, key in enumerate(new, len(places) + 1))
        numbers = [places.get(key, 0) for key in keys]
    found = torch.tensor(numbers, dtype=torch.int64)
    op.put(0, found.reshape(torch.Size(op.Input(1).sizes())))


@procedure("IndexLoad", inputs="2", outputs="1", inplace="0>0!", gradient="undefined")
def index_load(op: TorchOperator) -> None:
    """Set the keys of the index to input 1, with `skip_first_entry` without the first one."""
    index, keys = op.Input(0, Index), _keys(op)
    if op.GetSingleArgument("skip_first_entry", 0):
        require(bool(keys), "There must be a first key to skip.")
        keys = keys[1:]
    require(len(keys) <= index.most, f"{len(keys)} keys are more than the maximum of the index.")
    require(len(set(keys)) == len(keys), "The keys must be different.")
    index.places = {key: i for i, key in enumerate(keys, 1)}


@procedure("IndexStore", inputs="1", outputs="1", gradient="undefined")
def index_store(op: TorchOperator) -> None:
    """The keys in the order of their numbers."""
    index = op.Input(0, Index)
    keys = list(index.places)
    if index.dtype is c10.string:
        op.put_strings(0, [len(keys)], keys)
    else:
        op.put(0, torch.tensor(keys, dtype=index.dtype.torch))


@procedure("IndexFreeze", inputs="1", outputs="1", inplace="0>0!", gradient="undefined")
def index_freeze(op: TorchOperator) -> None:
    """Freeze the index: it accepts no new keys."""
    op.Input(0, Index).frozen = True


@procedure("IndexSize", inputs="1", outputs="1", gradient="undefined")
def index_size(op: TorchOperator) -> None:
    """The number of keys, plus one for unknown keys."""
    size = len(op.Input(0, Index).places) + 1
    op.put_value(0, size, c10.int64)
