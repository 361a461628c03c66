# SPDX-License-Identifier: Apache-2.0
"""The recorded operations on `bridge.caffe2.Tensor`, by its public methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bridge import at, caffe2

DEFAULT_MAX_KEEP = 2**63 - 1


def pattern(type_name: str, seed: int, count: int) -> Any:
    """The elements that `fill` writes, as the recorder makes them."""
    numbers = [seed + i for i in range(count)]
    if type_name == "string":
        tails = (b"x" * 20, b"\0", b"")
        return [b"s%d" % (n % 100) + tails[n % 3] for n in numbers]
    if type_name == "bool":
        return np.array([n % 2 != 0 for n in numbers], np.bool_)
    return np.array([n % 100 for n in numbers], type_name)


def numbers(word: str) -> list[int]:
    """`"2,3"` as `[2, 3]`, `"-"` as none at all."""
    return [] if word == "-" else [int(part) for part in word.split(",")]


def dims(word: str) -> tuple[int, ...]:
    return tuple(numbers(word))


class World:
    """Named tensors; `run` does to them what one recorded line says.

    `deleted` lists the ids of the external blocks whose deleter was called, in order.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, caffe2.Tensor] = {}
        self.external: dict[int, Any] = {}
        self.deleted: list[int] = []
        set_flags(keep=True, max_keep=DEFAULT_MAX_KEEP)

    def run(self, line: str) -> None:
        """Do one operation; raises what the tensor raises."""
        verb, *words = line.split(" ")
        getattr(self, "_" + verb)(*words)

    # Makers: where they fail, the name stays what it was.

    def _new(self, name: str, sizes: str) -> None:
        self.tensors[name] = caffe2.Tensor(dims(sizes), "cpu")

    def _untyped(self, name: str) -> None:
        self.tensors[name] = caffe2.Tensor("cpu")

    def _undefined(self, name: str) -> None:
        self.tensors[name] = caffe2.Tensor()

    def _alias(self, name: str, source: str) -> None:
        self.tensors[name] = self.tensors[source].Alias()

    def _unsafe(self, name: str, source: str) -> None:
        self.tensors[name] = self.tensors[source].UnsafeSharedInstance()

    def _clone(self, name: str, source: str) -> None:
        self.tensors[name] = self.tensors[source].Clone()

    def _copy_construct(self, name: str, source: str) -> None:
        self.tensors[name] = caffe2.Tensor(self.tensors[source], "cpu")

    def _empty(self, name: str, sizes: str, type_name: str) -> None:
        self.tensors[name] = caffe2.empty(dims(sizes), type_name)

    def _values(self, name: str, sizes: str, type_name: str, seeds: str) -> None:
        values = [pattern(type_name, seed, 1)[0] for seed in numbers(seeds)]
        if type_name != "string":
            array = np.array(values, type_name)
            self.tensors[name] = caffe2.TensorCPUFromValues(dims(sizes), array)
        else:  # a list of no strings does not tell its type
            self.tensors[name] = caffe2.Tensor(dims(sizes), values, type_name)

    def _at(self, name: str, type_name: str, count: str, start: str, end: str) -> None:
        whole = at.arange(int(count), dtype=type_name)
        self.tensors[name] = caffe2.Tensor(whole.slice(0, int(start), int(end)))

    def _destroy(self, name: str) -> None:
        del self.tensors[name]

    def _swap(self, name: str, other: str) -> None:
        tensors = self.tensors
        tensors[name], tensors[other] = tensors[other], tensors[name]

    def _reinitialize(self, name: str, sizes: str, type_name: str) -> None:
        tensor = self.tensors.setdefault(name, caffe2.Tensor())
        caffe2.ReinitializeTensor(tensor, dims(sizes), type_name)

    def _reinitialize_copy(self, name: str, type_name: str, source: str) -> None:
        tensor = self.tensors.setdefault(name, caffe2.Tensor())
        caffe2.ReinitializeAndCopyFrom(tensor, type_name, self.tensors[source])

    # Methods.

    def _resize(self, name: str, sizes: str) -> None:
        self.tensors[name].Resize(dims(sizes))

    def _resize_like(self, name: str, other: str) -> None:
        self.tensors[name].ResizeLike(self.tensors[other])

    def _reshape(self, name: str, sizes: str) -> None:
        self.tensors[name].Reshape(dims(sizes))

    def _mutable_data(self, name: str, type_name: str) -> None:
        assert len(self.tensors[name].mutable_data(type_name)) == self.tensors[name].numel()

    def _raw_mutable_data(self, name: str, *type_name: str) -> None:
        tensor = self.tensors[name]
        address = tensor.raw_mutable_data(*type_name)
        assert address == (tensor.raw_data() if tensor.numel() else 0)

    def _fill(self, name: str, type_name: str, seed: str) -> None:
        view = self.tensors[name].mutable_data(type_name)
        for i, element in enumerate(pattern(type_name, int(seed), len(view))):
            view[i] = element

    def _extend(self, name: str, num: str, growth: str) -> None:
        self.tensors[name].Extend(int(num), float(growth))

    def _extend_to(self, name: str, num: str, growth: str) -> None:
        self.tensors[name].ExtendTo(int(num), float(growth))

    def _shrink(self, name: str, rows: str) -> None:
        self.tensors[name].ShrinkTo(int(rows))

    def _reserve(self, name: str, rows: str) -> None:
        self.tensors[name].ReserveSpace(int(rows))

    def _free(self, name: str) -> None:
        self.tensors[name].FreeMemory()

    def _share(self, name: str, source: str) -> None:
        self.tensors[name].ShareData(self.tensors[source])

    def _copy(self, name: str, source: str) -> None:
        self.tensors[name].CopyFrom(self.tensors[source])

    def _external(self, name: str, block: str, type_name: str, nbytes: str, deleter: str) -> None:
        tensor = self.tensors[name]
        itemsize = np.dtype(type_name).itemsize
        count = max(1, tensor.numel(), int(nbytes) // itemsize)
        address, delete = self._block(int(block), type_name, count, deleter)
        tensor.ShareExternalPointer(address, type_name, int(nbytes), delete)

    def _storage_external(
        self, name: str, block: str, type_name: str, nbytes: str, deleter: str
    ) -> None:
        count = max(1, int(nbytes) // np.dtype(type_name).itemsize)
        address, delete = self._block(int(block), type_name, count, deleter)
        storage = self.tensors[name].storage()
        storage.UniqueStorageShareExternalPointer(address, type_name, int(nbytes), delete)

    def _storage_reset(self, name: str) -> None:
        self.tensors[name].storage().reset()

    def _block(
        self, block: int, type_name: str, count: int, deleter: str
    ) -> tuple[int, Callable[[int], None] | None]:
        """Memory from outside: its address, and the deleter that takes note."""
        memory = pattern(type_name, block, count)
        address = memory.ctypes.data
        self.external[block] = memory  # lives as long as the world

        def delete(freed: int) -> None:
            assert freed == address
            self.deleted.append(block)

        return address, delete if deleter == "1" else None

    def _flag(self, name: str, value: str) -> None:
        if name == "keep":
            caffe2.FLAGS.caffe2_keep_on_shrink = value == "1"
        else:
            caffe2.FLAGS.caffe2_max_keep_on_shrink_memory = int(value)


def set_flags(*, keep: bool, max_keep: int) -> None:
    caffe2.FLAGS.caffe2_keep_on_shrink = keep
    caffe2.FLAGS.caffe2_max_keep_on_shrink_memory = max_keep
