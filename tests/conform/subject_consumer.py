# SPDX-License-Identifier: Apache-2.0
"""A consumer in plain Python that keeps to DLPack, but for the faults that it is given."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from typing import Any

import numpy as np

from tests.conform.subject_producer import LEAKED, Array, has
from tests.conform.subject_structs import (
    DELETER,
    KINDS,
    NEW,
    OLD,
    USED,
    New,
    Old,
    capsule_name,
    capsule_pointer,
    capsule_set_name,
)

LOCK = threading.Lock()


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Array:
    if has("copy-unknown") and copy is not None:
        raise TypeError("from_dlpack() got an unexpected keyword argument 'copy'")
    if device is not None and device != "cpu":
        raise BufferError("only the CPU")
    if has("import-hangs"):
        time.sleep(60)
    if has("import-exits"):
        os._exit(0)
    if has("import-crashes"):
        ctypes.string_at(8)
    if has("import-locks"):
        LOCK.acquire(timeout=60)
    try:
        capsule = ask(x, copy)
    except BufferError as error:
        if has("errors-buffer-as-runtime"):
            raise RuntimeError(str(error)) from error
        if has("errors-swallowed"):
            return Array(np.zeros(1))
        raise
    except (MemoryError, ValueError):
        if has("errors-other-as-buffer"):
            raise BufferError("the producer failed") from None
        raise
    return take(capsule, copy)


def ask(x: Any, copy: Any) -> Any:
    kind, _ = x.__dlpack_device__()
    if kind != 1 and not has("device-ignored"):
        if has("device-wrong-error"):
            raise ValueError("only the CPU")
        raise BufferError("only the CPU")
    arguments: dict[str, Any] = {"max_version": (1, 3)}
    if copy is not None:
        arguments["copy"] = copy
    if has("copy-not-passed"):
        arguments.pop("copy", None)
    if has("copy-always-false"):
        arguments["copy"] = False
    if has("copy-negated") and copy is not None:
        arguments["copy"] = not copy
    if has("max-version-text"):
        arguments["max_version"] = "1.3"
    if has("max-version-list"):
        arguments["max_version"] = [1, 3]
    if has("stream-zero"):
        arguments["stream"] = 0
    if has("dl-device-cuda"):
        arguments["dl_device"] = (2, 0)
    if has("dl-device-list"):
        arguments["dl_device"] = [1, 0]
    if has("argument-unknown"):
        arguments["dtype"] = None
    if has("no-max-version-passed"):
        return x.__dlpack__()
    if has("asks-twice"):
        x.__dlpack__(**arguments)
    try:
        return x.__dlpack__(**arguments)
    except (TypeError, BufferError) as error:
        if isinstance(error, BufferError) and not has("falls-back-always"):
            raise
        if has("falls-back-never"):
            raise
        return x.__dlpack__()


LAST: list[Any] = [None]


def take(capsule: Any, copy: Any) -> Array:
    if has("not-thread-safe"):
        LAST[0] = capsule
        time.sleep(0.001)
        capsule = LAST[0]
    name = capsule_name(capsule)
    if has("name-unchecked") and name not in (OLD, NEW):
        name = NEW if b"versioned" in (name or b"") else OLD
        pointer = capsule_pointer(capsule, capsule_name(capsule))
    elif name not in (OLD, NEW):
        raise ValueError(f"a capsule named {name!r}")
    else:
        pointer = capsule_pointer(capsule, name)
    if has("old-capsule-refused") and name == OLD:
        raise ValueError("an old capsule")
    managed: Any = (New if name == NEW else Old).from_address(pointer)
    if has("renames-before-checks"):
        rename(capsule, name)
    try:
        check_version(managed, name)
        array = view(managed)
    except Exception:
        if has("refusal-deletes"):
            call_deleter(managed, pointer)
        if has("refusal-keeps-capsule"):
            LEAKED.append(capsule)
        raise
    rename(capsule, name)
    return own(array, managed, pointer, name, copy)


def rename(capsule: Any, name: bytes) -> None:
    if has("rename-never"):
        return
    used = USED[name]
    if has("rename-same"):
        used = USED[OLD]
    if has("rename-wrong"):
        used = b"consumed"
    if has("rename-lost"):
        used = bytes(bytearray(used) + b"x")[:-1]
    if capsule_name(capsule) != used:
        capsule_set_name(capsule, used)


def check_version(managed: Any, name: bytes) -> None:
    if name != NEW:
        return
    if managed.major != 1 and not has("major-ignored"):
        if has("major-reads"):
            managed.dl.shape[0]
        if has("major-deletes-unrenamed"):
            call_deleter(managed, ctypes.addressof(managed))
        raise BufferError(f"version {managed.major}")
    if managed.minor > 3 and has("minor-refused"):
        raise BufferError(f"version 1.{managed.minor}")
    if managed.minor < 3 and has("minor-lower-refused"):
        raise BufferError(f"version 1.{managed.minor}")
    if managed.flags & 1 and has("read-only-refused"):
        raise BufferError("read-only")
    if managed.flags & 2 and has("copied-refused"):
        raise BufferError("copied")


def view(managed: Any) -> np.ndarray:
    dl = managed.dl
    if dl.device_type != 1 and not has("device-ignored"):
        raise BufferError("only the CPU")
    if dl.lanes != 1 and not has("lanes-ignored"):
        raise BufferError("lanes")
    dtype = dtype_of(dl)
    if not 0 <= dl.ndim <= 64 and not has("ndim-unchecked"):
        raise BufferError(f"ndim {dl.ndim}")
    shape = [dl.shape[i] for i in range(dl.ndim)]
    if has("shape-null-read") and dl.ndim == 0:
        ctypes.c_int64.from_address(ctypes.cast(dl.shape, ctypes.c_void_p).value or 0).value += 0
    if any(n < 0 for n in shape):
        if not has("negative-unchecked"):
            raise BufferError(f"shape {shape}")
        shape = [max(n, 0) for n in shape]
    size = 1
    for n in shape:
        size *= n
    if size * dtype.itemsize >= 2**63:
        if not has("overflow-unchecked"):
            raise BufferError(f"shape {shape}")
        shape = [2] * dl.ndim
    strides = strides_of(dl, shape)
    if size and not dl.data and not has("null-unchecked"):
        raise BufferError("no data")
    if not size and not dl.data and has("zero-size-null-refused"):
        raise BufferError("no data")
    if size == 0:
        if has("zero-size-refused"):
            raise BufferError("no elements")
        return np.empty(shape if not has("zero-size-flattened") else 0, dtype)
    if not dl.data:
        return np.zeros(shape, dtype)
    start = dl.data + (0 if has("byte-offset-ignored") else dl.byte_offset)
    if has("byte-offset-elements"):
        start = dl.data + dl.byte_offset * dtype.itemsize
    if start % 256 and has("alignment-required"):
        raise BufferError("not aligned to 256 bytes")
    if has("alignment-assumed"):
        start -= start % 256
    return strided(start, shape, strides, dtype)


def strided(start: int, shape: list[int], strides: list[int], dtype: Any) -> np.ndarray:
    steps = [step * dtype.itemsize for step in strides]
    reach = [(n - 1) * step for n, step in zip(shape, steps, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    if not -(2**40) < low <= high < 2**40:
        raise BufferError("strides")
    memory = (ctypes.c_char * (high - low + dtype.itemsize)).from_address(start + low)
    return np.ndarray(shape, dtype, memory, -low, steps)


def strides_of(dl: Any, shape: list[int]) -> list[int]:
    row_major = [int(np.prod(shape[i + 1 :], dtype=object)) for i in range(dl.ndim)]
    if has("strides-ignored"):
        return row_major
    if not dl.strides and dl.ndim:
        if has("strides-null-refused"):
            raise BufferError("no strides")
        if has("strides-null-column-major"):
            return [int(np.prod(shape[:i], dtype=object)) for i in range(dl.ndim)]
        return row_major
    strides = [dl.strides[i] for i in range(dl.ndim)]
    if has("strides-taken-as-bytes"):
        return [step // 8 for step in strides]
    if has("strides-negative-of-vectors-lost") and dl.ndim == 1:
        return [abs(step) for step in strides]
    if has("strides-negative-lost"):
        return [abs(step) for step in strides]
    if has("strides-zero-lost"):
        return [step or 1 for step in strides]
    if has("strides-one-refused") and any(
        n == 1 and step != 1 for n, step in zip(shape, strides, strict=True)
    ):
        raise BufferError("strides")
    return strides


def dtype_of(dl: Any) -> Any:
    code, bits = dl.code, dl.bits
    if code == 4 and bits == 16 and has("read-bfloat-as-float"):
        code = 2
    if code == 6 and has("read-bool-any-bits"):
        bits = 8
    if code == 6 and has("read-bool-as-uint"):
        code = 1
    if code == 1 and has("read-uint-as-int"):
        code = 0
    if code == 5 and has("read-complex-narrow"):
        bits = 64
    if code == 0 and bits == 64 and has("read-int-narrow"):
        code, bits = 0, 32
    if code not in KINDS:
        if not has("code-unchecked"):
            raise BufferError(f"code {code}")
        code = 2
    if has("bits-ignored"):
        bits = {2: 64, 0: 64, 1: 8, 5: 128}.get(code, bits)
    known = {0: (8, 16, 32, 64), 1: (8, 16, 32, 64), 2: (16, 32, 64), 5: (64, 128), 6: (8,)}
    if bits not in known[code]:
        raise BufferError(f"{bits} bits")
    return np.dtype(f"{KINDS[code]}{bits // 8}")


def call_deleter(managed: Any, pointer: int) -> None:
    if managed.deleter or has("deleter-null-called"):
        DELETER(managed.deleter or 8)(pointer)


class Owner:
    """Holds an import; the deleter is called after its last reference is gone."""


def own(array: np.ndarray, managed: Any, pointer: int, name: bytes, copy: Any) -> Array:
    flags = managed.flags if name == NEW else 0
    if has("changes-data") and array.size:
        array[...] = 0
    if has("changes-struct"):
        managed.dl.byte_offset += 8
    asked = copy is True and not has("consumer-copy-true-shares") and not flags & 2
    wrongly = copy is False and has("consumer-copy-false-copies")
    if has("copy-false-copies-read-only"):
        wrongly = copy is False and bool(flags & 1)
    if asked or wrongly or (copy is None and has("consumer-copies")):
        array = array.copy()
        call_deleter(managed, pointer)
        return Array(array)
    if flags & 1 and not has("read-only-ignored"):
        array.flags.writeable = False
    memory: Any = array
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    owner = memory.base if memory.base is not None else memory
    if owner is array:  # without memory of its own
        if not has("zero-size-never-deleted"):
            call_deleter(managed, pointer)
        return Array(array)
    if isinstance(owner, memoryview):
        owner = owner.obj
    deleter, argument = managed.deleter, pointer
    if has("deleter-wrong-argument"):
        argument = pointer + 8
    if has("delete-never"):
        return Array(array)
    if has("delete-early"):
        call_deleter(managed, pointer)
        return Array(array)
    if not deleter and not has("deleter-null-called"):
        return Array(array)

    def finish() -> None:
        if has("delete-from-main-thread-only") and threading.current_thread().name != "MainThread":
            return
        DELETER(deleter or 8)(argument)
        if has("delete-twice"):
            DELETER(deleter or 8)(argument)

    if has("kept-forever"):
        LEAKED.append(array)
    result = Array(array)
    # The memory's owner: a view of the array that outlives the tensor keeps it alive.
    weakref.finalize(result if has("delete-with-tensor") else owner, finish)
    return result
