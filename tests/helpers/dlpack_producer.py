# SPDX-License-Identifier: Apache-2.0
"""An independent DLPack producer, in which every field of the standard can be set, also wrongly.

`TensorSpec` says what the DLTensor holds, `ManagedTensor` is the C struct with a deleter that
counts its calls, and the producer classes hand such structs out under each signature of
`__dlpack__` that the world has.
"""

from __future__ import annotations

import ctypes
import dataclasses
import weakref
from typing import Any

import numpy as np

from tests.helpers import dlpack_structs as abi

_CODE_OF_KIND = {"i": abi.INT, "u": abi.UINT, "f": abi.FLOAT, "c": abi.COMPLEX, "b": abi.BOOL}


@dataclasses.dataclass
class TensorSpec:
    """The content of a DLTensor; `strides` in elements, `None` for a NULL pointer.

    `ndim` is the length of `shape` unless it is to contradict it. `owner` is what the deleter lets
    go of, `copied` and `readonly` are in `flags` only.
    """

    address: int | None
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None
    code: int = abi.FLOAT
    bits: int = 32
    lanes: int = 1
    byte_offset: int = 0
    ndim: int | None = None
    device: tuple[int, int] = (abi.CPU, 0)
    flags: int = 0
    version: tuple[int, int] = (1, 3)
    has_deleter: bool = True
    owner: Any = None

    @classmethod
    def of_array(cls, array: np.ndarray[Any, Any], **fields: Any) -> TensorSpec:
        """Describe a NumPy array of a plain type, whose strides are whole elements."""
        whole = [divmod(stride, array.itemsize) for stride in array.strides]
        assert all(rest == 0 for _, rest in whole), "DLPack strides are whole elements"
        spec = cls(
            address=array.ctypes.data,
            shape=array.shape,
            strides=tuple(elements for elements, _ in whole),
            code=_CODE_OF_KIND[array.dtype.kind],
            bits=8 * array.itemsize,
            owner=array,
        )
        return dataclasses.replace(spec, **fields)

    def but(self, **fields: Any) -> TensorSpec:
        """The same with other values in some fields."""
        return dataclasses.replace(self, **fields)


# Structs handed out and not deleted yet are pinned, whoever else forgets them. A struct that was
# deleted stays known as long as a test holds it, so that a second call is counted, not fatal.
_pinned: set[ManagedTensor] = set()
_known: weakref.WeakValueDictionary[int, ManagedTensor] = weakref.WeakValueDictionary()
stray_deletes: list[int] = []


def outstanding() -> int:
    """How many structs were made and not deleted yet."""
    return len(_pinned)


class ManagedTensor:
    """A DLManagedTensor or DLManagedTensorVersioned of ours, filled from a spec.

    `deleted` counts the calls of its deleter. After the first call the struct holds no address and
    an impossible ndim, so that whoever reads on is found out.
    """

    def __init__(self, spec: TensorSpec, *, versioned: bool) -> None:
        self.versioned = versioned
        self.deleted = 0
        self.owner = spec.owner
        self._shape = self._array(spec.shape)
        self._strides = self._array(spec.strides)
        deleter = ctypes.cast(_delete, ctypes.c_void_p).value if spec.has_deleter else None
        tensor = abi.DLTensor(
            data=spec.address,
            device=abi.DLDevice(*spec.device),
            ndim=len(spec.shape or ()) if spec.ndim is None else spec.ndim,
            dtype=abi.DLDataType(spec.code, spec.bits, spec.lanes),
            shape=ctypes.addressof(self._shape) if self._shape is not None else None,
            strides=ctypes.addressof(self._strides) if self._strides is not None else None,
            byte_offset=spec.byte_offset,
        )
        self.struct: abi.DLManagedTensor | abi.DLManagedTensorVersioned
        if versioned:
            self.struct = abi.DLManagedTensorVersioned(
                version=abi.DLPackVersion(*spec.version),
                deleter=deleter,
                flags=spec.flags,
                dl_tensor=tensor,
            )
        else:
            self.struct = abi.DLManagedTensor(dl_tensor=tensor, deleter=deleter)
        self.address = ctypes.addressof(self.struct)
        _known[self.address] = self
        # Without a deleter it is unknown when the struct is no longer read: it stays for good.
        _pinned.add(self)

    @staticmethod
    def _array(values: tuple[int, ...] | None) -> ctypes.Array[ctypes.c_int64] | None:
        if values is None:
            return None
        return (ctypes.c_int64 * max(len(values), 1))(*values)

    def capsule(self, name: bytes | None = None) -> Any:
        """A capsule of this struct, under the name of its kind or a wrong one."""
        if name is None:
            name = abi.VERSIONED_NAME if self.versioned else abi.LEGACY_NAME
        destructor = ctypes.cast(_destroy_capsule, ctypes.c_void_p)
        return abi.capsule_new(self.address, abi.immortal(name), destructor)

    def count_delete(self) -> None:
        """What the deleter does: let the owner go, once."""
        self.deleted += 1
        self.owner = None
        self.struct.dl_tensor.data = None
        self.struct.dl_tensor.shape = None
        self.struct.dl_tensor.strides = None
        self.struct.dl_tensor.ndim = 2**30
        _pinned.discard(self)


@abi.immortal
@abi.DELETER
def _delete(address: int) -> None:
    managed = _known.get(address)
    if managed is None:
        stray_deletes.append(address)
    else:
        managed.count_delete()


@abi.immortal
@abi.DELETER
def _destroy_capsule(capsule: int) -> None:
    """Call the deleter of a capsule that was not taken, as the protocol asks of producers."""
    for name in (abi.VERSIONED_NAME, abi.LEGACY_NAME):
        if abi.dying_capsule_is_valid(capsule, name):
            managed = _known[abi.dying_capsule_pointer(capsule, name)]
            if managed.struct.deleter:
                managed.count_delete()


class Producer:
    """Hands its spec out through the newest `__dlpack__`; `made` has every struct so far.

    `versioned=None` gives what `max_version` asks for, `True` and `False` always the same kind.
    `device` is what `__dlpack_device__` says, which may contradict the spec.
    """

    def __init__(
        self,
        spec: TensorSpec,
        *,
        versioned: bool | None = None,
        device: tuple[int, int] | None = None,
        capsule_name: bytes | None = None,
    ) -> None:
        self.spec = spec
        self.versioned = versioned
        self.device = spec.device if device is None else device
        self.capsule_name = capsule_name
        self.calls: list[dict[str, Any]] = []
        self.made: list[ManagedTensor] = []

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        arguments = {"stream": stream, "max_version": max_version}
        self.calls.append({**arguments, "dl_device": dl_device, "copy": copy})
        asked = max_version is not None and max_version[0] >= 1
        return self.make(asked if self.versioned is None else self.versioned)

    def make(self, versioned: bool) -> Any:
        managed = ManagedTensor(self.spec, versioned=versioned)
        self.made.append(managed)
        return managed.capsule(self.capsule_name)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    @property
    def deletions(self) -> list[int]:
        """How often each struct's deleter was called, oldest struct first."""
        return [managed.deleted for managed in self.made]


class OldProducer(Producer):
    """The signature before the array API standard: no arguments at all, a legacy capsule."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        self.calls.append({})
        return self.make(bool(self.versioned))


class StreamProducer(Producer):
    """The signature of the first array API standard: only `stream`, a legacy capsule."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        self.calls.append({"stream": stream})
        return self.make(bool(self.versioned))


class ForgetfulProducer(Producer):
    """A producer that keeps no record, for tests that count what stays behind."""

    def __dlpack__(self, *, max_version: tuple[int, int] | None = None, **_others: Any) -> Any:
        return self.make(max_version is not None)

    def make(self, versioned: bool) -> Any:
        return ManagedTensor(self.spec, versioned=versioned).capsule()


class RaisingProducer(Producer):
    """A producer whose `__dlpack__` raises what it was made with."""

    def __init__(self, error: BaseException, device: tuple[int, int] = (abi.CPU, 0)) -> None:
        super().__init__(TensorSpec(None, (0,), (1,)), device=device)
        self.error = error

    def make(self, versioned: bool) -> Any:
        raise self.error
