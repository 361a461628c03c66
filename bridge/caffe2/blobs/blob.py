# SPDX-License-Identifier: Apache-2.0
"""Blob: a holder of a tensor, a string, or an object of a registered class."""

from __future__ import annotations

import weakref

from bridge.at import Tensor as AtTensor
from bridge.c10 import EnforceNotMet, TypeMeta, observe
from bridge.c10 import string as string_type
from bridge.c10 import tensor as tensor_type
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.base.names import name_of
from bridge.caffe2.blobs.blob_tensor import BlobTensor
from bridge.caffe2.blobs.copies import copied_to_numpy
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.feed import feed_error, put_on
from bridge.caffe2.blobs.int8 import Int8Tensor, Int8TensorCPU
from bridge.caffe2.blobs.put import put
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import torch

__all__ = ["Blob"]


class Blob(BlobCore):
    """A holder of one thing at a time: a tensor, a string, or an object of a registered class.

    A workspace gives blobs names; a blob lives on when its name or its workspace goes.

    Follows Blob, ATen/core/blob.h, and its Python class in caffe2/python/pybind_state.cc,
    PyTorch 1.8.1.

    >>> from bridge.caffe2.blobs.blob import Blob
    >>> blob = Blob()
    >>> blob.feed("text"), blob.fetch(), blob.IsType(bytes), blob.is_tensor()
    (True, b'text', True, False)
    """

    __slots__ = ()

    def feed(self, value: Any, device_option: Any = None) -> bool:
        """Make the blob hold `value`; return True.

        A torch tensor, an ``at.Tensor``, a ``caffe2.Tensor`` or another DLPack producer is shared,
        and has to be contiguous. A NumPy array is copied, into the buffer of the blob's own tensor
        where that is of the same type and fits. `bytes` and `str` are stored as a string, arrays of
        them as a tensor of strings.

        `device_option` says where a NumPy array goes; what is shared stays where it is.

        Raises EnforceNotMet: `value` is none of these or cannot be shared; the reason is its
        ``__cause__``. The blob then holds what it held.
        """
        if observe.outermost() and not isinstance(value, (bytes, str)):
            return observe.watch("Blob.feed", value, "blob", self.feed, value, device_option)
        try:
            if device_option is None:
                put(self, value)
            else:
                put_on(self, value, device_option)
        except Exception as cause:
            raise feed_error("The blob", value, "Blob.feed", cause) from cause
        return True

    def fetch(self) -> Any:
        """Copy what the blob holds: a tensor into NumPy, a string into `bytes`.

        A tensor of strings gives an object array of `bytes`, a quantized tensor an `Int8Tensor`.
        Raises EnforceNotMet: the blob holds nothing that can be fetched; the error says what.
        """
        return self._fetch(None, "Blob.fetch")

    def tensor(self) -> BlobTensor:
        """Return the blob's tensor for work in place; make an empty one on the CPU if it has none.

        What else the blob held is dropped then. The same object is given as long as it is in use.
        """
        if self._tensor is None or not self._tensor.defined():
            self._set_tensor(Tensor("cpu"), own=True)
        return self.as_tensor()

    def as_tensor(self) -> BlobTensor:
        """Return the blob's tensor for work in place. Raises EnforceNotMet: it holds none."""
        tensor = self._tensor
        if tensor is None:
            raise EnforceNotMet(
                f"The blob holds {self._describe_contents()}, not a tensor; tensor() makes one.",
                "Blob.as_tensor",
                condition="is_tensor()",
            )
        handle: BlobTensor | None = self._live_handle()
        if handle is None or handle._tensor is not tensor:
            handle = BlobTensor._of(self, tensor)
            self._handle = weakref.ref(handle)
        return handle

    def is_tensor(self) -> bool:
        """Return whether the blob holds a tensor."""
        return self._tensor is not None

    def to_torch(self) -> torch.Tensor:
        """Return the tensor to torch, sharing memory; a torch tensor that was fed is that same one.

        Raises EnforceNotMet: the blob holds no tensor, or one that torch cannot have.
        """
        return self._to_torch(None, "Blob.to_torch")

    def serialize(self, name: Any) -> bytes:
        """Write what the blob holds as Caffe2's message, which calls it `name`: the same bytes.

        A tensor, contiguous and on the CPU, is copied once. Raises EnforceNotMet: the blob holds
        nothing, or elements or an object that Caffe2 has no form for; or more than 2 GiB, which
        protobuf does not read. Follows SerializeBlob, caffe2/core/blob_serialization.cc.
        """
        from bridge.caffe2.blobs.serialize import (
            serialize,  # not needed by most: loaded here
        )

        text = name_of(name, "Blob.serialize")
        return serialize(self, text, "Blob.serialize")

    def deserialize(self, serialized: Any) -> None:
        """Make the blob hold what Caffe2's message `serialized`, bytes, says: copied.

        A tensor goes into the buffer that the blob's own tensor has where type and size fit. Part
        of a large tensor, a chunk, goes to its place in the whole; chunks may come in any order.

        Raises EnforceNotMet: the bytes are no such message, contradict themselves, or hold what is
        not to be had here. The blob then holds what it held. Follows DeserializeBlob,
        caffe2/core/blob_serialization.cc.
        """
        from bridge.caffe2.blobs.deserialize import deserialize

        deserialize(self, serialized, "The blob", "Blob.deserialize")

    def IsType(self, T: Any) -> bool:
        """Return whether the blob holds something of the type that `T` names.

        ``caffe2.Tensor`` or ``c10.tensor``: a tensor; `bytes` or ``c10.string``: a string; a
        registered class: an object of it. Raises EnforceNotMet: `T` names no type.
        """
        meta = TypeMeta.Make(T)
        return meta is tensor_type if self._tensor is not None else meta is self._meta

    def Get(self, T: Any) -> Any:
        """Return what the blob holds, shared, if it is of the type that `T` names.

        Raises EnforceNotMet: it is not, and the error says what it is; or `T` names no type.
        """
        if not self.IsType(T):
            raise EnforceNotMet(
                f"The blob holds {self._describe_contents()}, the caller expects {_name_of(T)}.",
                "Blob.Get",
                condition="IsType(T)",
            )
        return self._contents()

    def GetMutable(self, T: Any) -> Any:
        """Return what the blob holds, shared; put a new ``T()`` there if it is of another type.

        A string is `bytes`, which Python cannot change: put another by `feed` or `Reset`.

        Raises EnforceNotMet: `T` names no type, or ``T()`` fails; the blob then holds what it held.
        """
        if not self.IsType(T):
            try:
                made = _made(T)
            except Exception as cause:
                raise wrap_error(
                    f"A new {_name_of(T)} cannot be made; make one and put it by Reset(obj)",
                    "Blob.GetMutable",
                    cause,
                ) from cause
            self.Reset(made)
        return self._contents()

    def Reset(self, obj: Any = None) -> None:
        """Make the blob hold `obj` itself, which is its own from then on; None: nothing.

        `obj` is a tensor of either wrapper, `bytes` or `str` (stored as UTF-8), or an object of a
        registered class. Raises EnforceNotMet: its class is not registered, or an ``at.Tensor`` is
        not contiguous; the blob then holds what it held.
        """
        if isinstance(obj, Tensor):
            self._set_tensor(obj, own=True)
        elif isinstance(obj, AtTensor):
            self._set_tensor(Tensor(obj), own=True)
        elif isinstance(obj, (bytes, str)):
            self._set_string(obj)
        else:
            self._set_object(obj, None if obj is None else _type_of(obj))

    def swap(self, other: Blob) -> None:
        """Exchange what this blob and `other` hold. Raises EnforceNotMet: it is no Blob."""
        if not isinstance(other, Blob):
            raise EnforceTypeError(
                f"A Blob swaps with a Blob, not with {type(other).__name__}.", "Blob.swap"
            )
        own, others_own = self._own, other._own
        self._own = other._own = False
        for name in ("_tensor", "_object", "_meta", "_handle"):
            mine, theirs = getattr(self, name), getattr(other, name)
            setattr(self, name, theirs)
            setattr(other, name, mine)
        self._own, other._own = others_own, own
        for blob in (self, other):
            handle = blob._live_handle()
            if handle is not None:
                handle._blob = blob

    def __repr__(self) -> str:
        return f"<Blob that holds {self._describe_contents()}>"

    def _fetch(self, name: Any, caller: str) -> Any:
        """Do what `fetch` does; `name` is what an error calls the blob, None if it has no name."""
        held = self._contents()
        if observe.outermost() and not isinstance(held, bytes):
            source = _source(name)
            return observe.watch(caller, source, "numpy.ndarray", self._fetch, name, caller)
        try:
            if isinstance(held, Tensor):
                return copied_to_numpy(held)
            if isinstance(held, bytes):
                return held
            if isinstance(held, Int8TensorCPU):
                return Int8Tensor(copied_to_numpy(held.t), held.scale, held.zero_point)
        except Exception as cause:
            raise wrap_error(
                f"{self._describe(name)}, which cannot be fetched", caller, cause
            ) from cause
        raise EnforceNotMet(
            f"{self._describe(name)}, which cannot be fetched. Feed it a tensor, an array or a "
            "string first.",
            caller,
        )

    def _to_torch(self, name: Any, caller: str) -> torch.Tensor:
        """Do what `to_torch` does; `name` as in `_fetch`."""
        tensor = self._tensor
        if observe.outermost():
            source = _source(name)
            return observe.watch(caller, source, "torch.Tensor", self._to_torch, name, caller)
        if tensor is None:
            raise EnforceNotMet(
                f"{self._describe(name)}, which is no tensor.", caller, condition="is_tensor()"
            )
        try:
            return tensor.to_torch()
        except Exception as cause:
            raise wrap_error(
                f"{self._describe(name)}, which torch cannot have", caller, cause
            ) from cause

    def _size_bytes(self) -> int:
        """Count the bytes of a tensor, those of its strings included; 0 for all else."""
        tensor = self._tensor
        if tensor is None or not tensor.defined():
            return 0
        nbytes: int = tensor.nbytes()
        if tensor.IsType(string_type) and tensor.storage_initialized():
            nbytes += sum(map(len, tensor.data(string_type)[:]))
        return nbytes


def _source(name: Any) -> str:
    """Say what an audit calls the blob."""
    if isinstance(name, bytes):
        name = name.decode()
    return observe.Label("blob" if name is None else f"blob {str(name)!r}")


def _made(T: Any) -> Any:
    """Make an object of the class that `T` is or names."""
    meta = TypeMeta.Make(T)
    if meta is tensor_type:
        return Tensor()
    if meta is string_type:
        return b""
    made = T if isinstance(T, type) else meta.element_class
    if made is None:
        raise TypeError(f"{meta} names no class")
    return made()


def _type_of(obj: Any) -> TypeMeta:
    """Return the type of the first class of `obj`, its own or a base, that is an element type."""
    for cls in type(obj).__mro__[:-1]:
        try:
            return TypeMeta.Make(cls)
        except TypeError:
            continue
    raise EnforceTypeError(
        f"{type(obj).__qualname__} is no class that a blob can hold; register it by "
        "c10.TypeMeta.Register(cls).",
        "Blob.Reset",
    )


def _name_of(T: Any) -> str:
    return T.__qualname__ if isinstance(T, type) else str(T)
