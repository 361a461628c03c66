# SPDX-License-Identifier: Apache-2.0
"""A plain model of `caffe2::Tensor`, as PyTorch 1.8.1 has it: no memory, only what it would hold.

It runs the lines that tests/conformance/README.md describes and shows what the transcripts show, so
the transcripts of the real tensor are the test of the model, and the model the test of the bridge.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tests.conformance.world import DEFAULT_MAX_KEEP, dims, numbers, pattern

from .model_state import ITEMSIZE, Buffer, Impl, RefusedError, Storage, UnsafeError


class Model:
    """Named tensors without memory; `None` is an undefined one."""

    def __init__(self) -> None:
        self.tensors: dict[str, Impl | None] = {}
        self.keep_on_shrink, self.max_keep = True, DEFAULT_MAX_KEEP
        self.deleted: list[int] = []
        self.released: list[int] = []
        self._numbers: dict[Buffer, int] = {}

    def run(self, line: str) -> None:
        """Do one operation; `RefusedError` where the real tensor raises."""
        verb, *words = line.split(" ")
        before = self._buffers()
        try:
            getattr(self, "_" + verb)(*words)
        finally:
            gone = before - self._buffers()
            self.deleted = sorted(b.deleter_of for b in gone if b.deleter_of is not None)
            known = (self._numbers.get(b) for b in gone if not b.external)
            self.released = sorted(number for number in known if number is not None)
        for impl in self._impls():
            impl.check()

    def observe(self) -> dict[str, dict[str, Any]]:
        """Every tensor, with the fields of the transcripts."""
        return {name: self._look(name) for name in sorted(self.tensors)}

    def use_count(self, storage: Storage) -> int:
        return sum(impl.storage is storage for impl in self._impls())

    def defined(self, name: str) -> Impl:
        impl = self.tensors.get(name)
        if impl is None:
            raise UnsafeError("a method of an undefined tensor")
        return impl

    def _impls(self) -> set[Impl]:
        return {impl for impl in self.tensors.values() if impl is not None}

    def _buffers(self) -> set[Buffer]:
        return {i.storage.buffer for i in self._impls() if i.storage.buffer is not None}

    def _look(self, name: str) -> dict[str, Any]:
        impl = self.tensors[name]
        if impl is None:
            return {"defined": False}
        strides = [1] * len(impl.sizes)
        for axis in range(len(strides) - 2, -1, -1):
            strides[axis] = strides[axis + 1] * max(1, impl.sizes[axis + 1])
        buffer = impl.storage.buffer
        fields: dict[str, Any] = {
            "defined": True,
            "sizes": list(impl.sizes),
            "strides": strides,
            "numel": impl.numel,
            "dtype": impl.dtype,
            "itemsize": impl.itemsize,
            "nbytes": impl.numel * impl.itemsize,
            "capacity": impl.storage.nbytes,
            "use_count": self.use_count(impl.storage),
            "offset": impl.offset,
            "storage_initialized": impl.initialized,
            "dtype_initialized": impl.dtype != "",
            "contiguous": True,
            "same_as": min(key for key, other in self.tensors.items() if other is impl),
            "buffer": None,
        }
        if buffer is None:
            return fields
        fields["buffer"] = self._numbers.setdefault(buffer, len(self._numbers))
        if impl.dtype and impl.numel:
            if impl.dtype == "string":
                fields["strings"] = [text.hex() for text in impl.read()]
            else:
                cells = (".." if cell is None else f"{cell:02x}" for cell in impl.read())
                fields["bytes"] = "".join(cells)
        return fields

    # The operations, by the verbs of the transcripts.

    def _flag(self, name: str, value: str) -> None:
        if name == "keep":
            self.keep_on_shrink = value == "1"
        else:
            self.max_keep = int(value)

    def _new(self, name: str, sizes: str) -> None:
        self.tensors[name] = Impl(dims(sizes))

    def _untyped(self, name: str) -> None:
        self.tensors[name] = Impl()

    def _undefined(self, name: str) -> None:
        self.tensors[name] = None

    def _destroy(self, name: str) -> None:
        del self.tensors[name]

    def _swap(self, name: str, other: str) -> None:
        tensors = self.tensors
        tensors[name], tensors[other] = tensors[other], tensors[name]

    def _unsafe(self, name: str, source: str) -> None:
        self.tensors[name] = self.defined(source)

    def _alias(self, name: str, source: str) -> None:
        impl = self.defined(source)
        if not impl.initialized:
            raise RefusedError("an alias of no content")
        self.tensors[name] = dataclasses.replace(impl, reserved=False)

    def _clone(self, name: str, source: str) -> None:
        cloned = Impl()
        self._copy_to(cloned, self.defined(source))
        self.tensors[name] = cloned

    _copy_construct = _clone

    def _empty(self, name: str, sizes: str, dtype: str) -> None:
        impl = Impl(dims(sizes))
        impl.mutable_data(dtype)
        self.tensors[name] = impl

    def _values(self, name: str, sizes: str, dtype: str, seeds: str) -> None:
        impl = Impl(dims(sizes))
        if impl.numel != len(numbers(seeds)):
            raise RefusedError("as many values as elements")
        impl.mutable_data(dtype)
        impl.write([cell for seed in numbers(seeds) for cell in encoded(dtype, seed, 1)])
        self.tensors[name] = impl

    def _at(self, name: str, dtype: str, count: str, start: str, end: str) -> None:
        whole = Buffer(list(np.arange(int(count)).astype(dtype).tobytes()), strings=False)
        storage = Storage(whole, len(whole.cells))
        sizes = (int(end) - int(start),)
        self.tensors[name] = Impl(sizes, dtype, int(start), storage=storage)

    def _resize(self, name: str, sizes: str) -> None:
        self._resize_to(self.defined(name), dims(sizes))

    def _resize_like(self, name: str, other: str) -> None:
        if self.defined(name) is not self.defined(other):
            self._resize_to(self.defined(name), self.defined(other).sizes)

    def _resize_to(self, impl: Impl, sizes: tuple[int, ...]) -> None:
        changed = math.prod(sizes) != impl.numel
        impl.sizes = sizes
        if not changed:
            return
        spare = impl.storage.nbytes - impl.need(impl.numel)
        drop = spare < 0 or (
            not impl.reserved and (not self.keep_on_shrink or spare > self.max_keep)
        )
        if drop and impl.initialized:
            impl.free()

    def _reshape(self, name: str, sizes: str) -> None:
        impl = self.defined(name)
        if min(dims(sizes), default=0) < 0 or math.prod(dims(sizes)) != impl.numel:
            raise RefusedError("as many elements")
        impl.sizes = dims(sizes)

    def _mutable_data(self, name: str, dtype: str) -> None:
        self.defined(name).mutable_data(dtype)

    def _raw_mutable_data(self, name: str, dtype: str = "") -> None:
        impl = self.defined(name)
        if not dtype and not impl.dtype:
            raise RefusedError("no type")
        impl.mutable_data(dtype or impl.dtype)

    def _fill(self, name: str, dtype: str, seed: str) -> None:
        impl = self.defined(name)
        impl.mutable_data(dtype)
        for other in self._impls():
            other.check()
        impl.write(encoded(dtype, int(seed), impl.numel))

    def _extend(self, name: str, num: str, growth: str) -> None:
        impl = self.defined(name)
        if not impl.sizes or int(num) < 0:
            raise RefusedError("no rows")
        rows, rest = impl.sizes[0] + int(num), impl.sizes[1:]
        if impl.storage.buffer is None:
            self._resize_to(impl, (rows, *rest))
            return
        if rows * math.prod(rest) * impl.itemsize <= impl.storage.nbytes:
            impl.sizes = (rows, *rest)
            return
        if impl.offset or self.use_count(impl.storage) > 1:
            raise UnsafeError("moves what it should not, from where it should not")
        factor = np.float32(1) + np.float32(growth) / np.float32(100)
        capacity = max(rows, math.ceil(np.float32(impl.sizes[0]) * factor))
        kept = impl.read()
        self._resize_to(impl, (capacity, *rest))
        impl.mutable_data(impl.dtype)
        assert impl.storage.buffer is not None
        impl.storage.buffer.cells[: len(kept)] = kept
        impl.reserved, impl.sizes = True, (rows, *rest)

    def _extend_to(self, name: str, num: str, growth: str) -> None:
        impl = self.defined(name)
        if not impl.sizes or float(growth) < 0:
            raise RefusedError("no rows, or shrinking")
        self._extend(name, str(int(num) - impl.sizes[0]), growth)

    def _shrink(self, name: str, rows: str) -> None:
        impl = self.defined(name)
        if not impl.sizes or int(rows) > impl.sizes[0] or self.use_count(impl.storage) > 1:
            raise RefusedError("no rows, more rows, or shared")
        impl.sizes = (int(rows), *impl.sizes[1:])

    def _reserve(self, name: str, rows: str) -> None:
        impl = self.defined(name)
        if self.use_count(impl.storage) > 1:
            raise RefusedError("shared")
        if not impl.sizes:
            raise UnsafeError("size 0 of no dimension")
        capacity, sizes = (int(rows), *impl.sizes[1:]), impl.sizes
        if math.prod(capacity) * impl.itemsize <= impl.storage.nbytes:
            return
        impl.storage.buffer = None
        impl.sizes = capacity
        impl.mutable_data(impl.dtype)
        impl.sizes, impl.reserved = sizes, True

    def _free(self, name: str) -> None:
        self.defined(name).free()

    def _share(self, name: str, source: str) -> None:
        impl, other = self.defined(name), self.defined(source)
        if impl.numel != other.numel or not other.initialized:
            raise RefusedError("other size, or no content")
        impl.storage, impl.dtype, impl.offset = other.storage, other.dtype, other.offset

    def _external(self, name: str, block: str, dtype: str, nbytes: str, deleter: str) -> None:
        impl, itemsize = self.defined(name), ITEMSIZE[dtype]
        count = max(1, impl.numel, int(nbytes) // itemsize)
        deleter_of = int(block) if deleter == "1" else None
        buffer = Buffer(encoded(dtype, int(block), count), False, deleter_of, external=True)
        if self.use_count(impl.storage) > 1:
            impl.storage = Storage()
        impl.storage.buffer = buffer
        impl.storage.nbytes = int(nbytes) or impl.numel * itemsize
        impl.dtype, impl.offset = dtype, 0

    def _copy(self, name: str, source: str) -> None:
        self._copy_to(self.defined(name), self.defined(source))

    def _copy_to(self, impl: Impl, source: Impl) -> None:
        if not source.initialized:
            raise RefusedError("no content")
        if impl is source:
            return
        buffer = impl.storage.buffer
        if buffer is not None and buffer.strings is not (impl.dtype == "string"):
            raise UnsafeError("copies strings over plain memory")
        if impl.storage is source.storage and impl.offset != source.offset:
            raise UnsafeError("overlapping memory")
        if impl.dtype != source.dtype:
            impl.storage, impl.dtype = Storage(), source.dtype
        cells = source.read()
        self._resize_to(impl, source.sizes)
        if impl.numel:
            impl.mutable_data(impl.dtype)
            impl.write(cells)

    def _reinitialize(self, name: str, sizes: str, dtype: str) -> None:
        impl = self.tensors.get(name)
        if impl is not None and impl.sizes != dims(sizes):
            self._resize_to(impl, dims(sizes))  # also where it is then given up
        if impl is None or impl.dtype != dtype:
            self._empty(name, sizes, dtype)
        else:
            impl.mutable_data(dtype)

    def _reinitialize_copy(self, name: str, dtype: str, source: str) -> None:
        other = self.defined(source)
        impl = self.tensors.setdefault(name, None)
        if impl is not None and impl.dtype not in ("", other.dtype):
            raise RefusedError("another type")
        copied = Impl() if impl is None else impl
        self._copy_to(copied, other)
        self.tensors[name] = copied


def encoded(dtype: str, seed: int, count: int) -> list[Any]:
    """The cells of the pattern that `fill` writes."""
    elements = pattern(dtype, seed, count)
    return elements if dtype == "string" else list(elements.tobytes())
