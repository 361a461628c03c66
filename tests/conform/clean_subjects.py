# SPDX-License-Identifier: Apache-2.0
"""Subjects that keep to DLPack, each in a way of its own: no rule may be broken by any."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from tests.conform import subject_consumer
from tests.conform.subject_producer import Array
from tests.conform.subject_structs import (
    DELETER,
    NEW,
    OLD,
    USED,
    New,
    Old,
    capsule_name,
    capsule_pointer,
    capsule_set_name,
)
from tests.conform.subjects import Subject, TableSubject


class OnlyProducer:
    """It has neither from_dlpack nor to_numpy."""

    name = "only a producer"
    make = staticmethod(Array)


class OnlyConsumer:
    """It has no make."""

    name = "only a consumer"
    from_dlpack = staticmethod(subject_consumer.from_dlpack)
    to_numpy = staticmethod(lambda tensor: tensor.array)


class Blind:
    """It has no to_numpy."""

    name = "without to_numpy"
    make = staticmethod(Array)
    from_dlpack = staticmethod(subject_consumer.from_dlpack)


class NewOnly(Array):
    """It refuses the old call, as it may since March 2025."""

    __slots__ = ()

    def __dlpack__(self, *, max_version: Any = None, **arguments: Any) -> Any:
        if max_version is None or max_version[0] < 1:
            raise BufferError("max_version is needed")
        return super().__dlpack__(max_version=max_version, **arguments)


class NewOnlySubject(Subject):
    name = "without the old call"
    make = staticmethod(NewOnly)  # type: ignore[assignment]


class Copying(Subject):
    """make copies, and from_dlpack always copies: copy=False is refused with ValueError."""

    name = "copies"

    def make(self, array: np.ndarray) -> Array:
        return Array(np.array(array))

    def from_dlpack(self, x: Any, *, device: Any = None, copy: Any = None) -> Any:
        if copy is False:
            raise ValueError("it copies")
        tensor = subject_consumer.from_dlpack(x, copy=copy)
        return Array(np.array(tensor.array))


class Refusing(Subject):
    """make takes few things: floats in rows."""

    name = "refuses"

    def make(self, array: np.ndarray) -> Array:
        if array.dtype not in ("f4", "f8") or not array.flags.c_contiguous:
            raise TypeError("no")
        return Array(array)


class WithoutReadOnly(Subject):
    """Its tensors know nothing of read-only: the flag is ignored."""

    name = "without read-only arrays"

    class Tensor:
        def __init__(self, array: np.ndarray) -> None:
            self.hidden = array

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

        def __dlpack__(self, **arguments: Any) -> Any:
            return Array(self.hidden).__dlpack__(**arguments)

    def make(self, array: np.ndarray) -> Any:
        return self.Tensor(np.array(array))

    def from_dlpack(self, x: Any, **kwargs: Any) -> Any:
        array = subject_consumer.from_dlpack(x, **kwargs).array
        memory = array
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        if not array.flags.writeable and memory.flags.writeable:
            array = np.ndarray(array.shape, array.dtype, memory.base, 0, array.strides)
        return self.Tensor(array)

    def to_numpy(self, tensor: Any) -> Any:
        return tensor.hidden


class OldConsumer:
    """It asks without max_version, and takes old capsules only; no tensor of a device."""

    name = "asks without max_version"

    def from_dlpack(self, x: Any, copy: Any = None) -> Any:
        if x.__dlpack_device__()[0] != 1:
            raise BufferError("only the CPU")
        capsule = x.__dlpack__()
        if capsule_name(capsule) != OLD:
            raise ValueError("not an old capsule")
        array = subject_consumer.take(capsule, None).array
        return np.array(array) if copy else array

    def to_numpy(self, tensor: Any) -> Any:
        return tensor


class LeavesToCapsule(Subject):
    """What it refuses, it renames, and calls the deleter itself."""

    name = "deletes what it refuses"

    def from_dlpack(self, x: Any, *, device: Any = None, copy: Any = None) -> Any:
        if x.__dlpack_device__()[0] != 1:
            raise BufferError("only the CPU")
        try:
            capsule = x.__dlpack__(max_version=(1, 0), copy=copy, dl_device=(1, 0))
        except TypeError:
            capsule = x.__dlpack__()
            copy = copy or None
        name = capsule_name(capsule)
        if name not in USED:
            raise ValueError("no capsule of DLPack")
        address = capsule_pointer(capsule, name)
        capsule_set_name(capsule, USED[name])
        managed: Any = (New if name == NEW else Old).from_address(address)
        deleter = managed.deleter
        try:
            subject_consumer.check_version(managed, name)
            array = subject_consumer.view(managed)
        except Exception:
            if deleter:
                DELETER(deleter)(address)
            raise
        if copy and not (name == NEW and managed.flags & 2):
            array = array.copy()
        if array.base is None:
            if deleter:
                DELETER(deleter)(address)
        else:
            if name == NEW and managed.flags & 1:
                array.flags.writeable = False
            memory = array
            while isinstance(memory.base, np.ndarray):
                memory = memory.base
            if deleter:
                weakref.finalize(memory.base, DELETER(deleter), ctypes.c_void_p(address))
        return Array(array)


class Immutable(Subject):
    """Its arrays cannot be written, its exports are read-only."""

    name = "immutable"

    class Tensor(Array):
        __slots__ = ()

        def __init__(self, array: np.ndarray) -> None:
            super().__init__(array[...])
            self.array.flags.writeable = False

    def make(self, array: np.ndarray) -> Array:
        return self.Tensor(array)


class OldStrides(Subject):
    """Version 1.0, whose strides may be NULL; it uses byte_offset; a NULL deleter for nothing."""

    name = "version 1.0"

    class Tensor(Array):
        __slots__ = ()

        def export(self, array: np.ndarray, new: bool, copied: bool, version: Any = None) -> int:
            address = super().export(array, new, copied, version)
            managed: Any = (New if new else Old).from_address(address)
            if new:
                managed.minor = 0
            if array.flags.c_contiguous:
                managed.dl.strides = None
            if array.ndim == 0:
                managed.dl.shape = None
            if managed.dl.data:
                managed.dl.byte_offset = managed.dl.data % 64
                managed.dl.data -= managed.dl.byte_offset
            return address

    def make(self, array: np.ndarray) -> Array:
        return self.Tensor(array)


CLEAN = (
    Subject,
    TableSubject,
    OnlyProducer,
    OnlyConsumer,
    Blind,
    NewOnlySubject,
    Copying,
    Refusing,
    WithoutReadOnly,
    OldConsumer,
    LeavesToCapsule,
    Immutable,
    OldStrides,
)
