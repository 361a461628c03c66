# SPDX-License-Identifier: Apache-2.0
"""Blob: a container of a tensor, a string, or an object of a registered class."""

from __future__ import annotations

import weakref

from bridge.annotation import Any
from bridge.at import Tensor as AtTensor
from bridge.c10 import EnforceNotMet, TypeMeta, reports
from bridge.c10 import string as string_type
from bridge.c10 import tensor as tensor_type
from bridge.c10.errors import EnforceTypeError
from bridge.caffe2.base.names import name_of
from bridge.caffe2.base.wrapped_errors import wrap_error, wrapping
from bridge.caffe2.blobs.blob_tensor import BlobTensor
from bridge.caffe2.blobs.copies import copied_to_numpy
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.feed import feed
from bridge.caffe2.blobs.int8 import Int8Tensor, Int8TensorCPU
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import torch


class Blob(BlobCore):
    """A container of one value: a tensor, a string, or an object of a registered class.

    Its name is known to workspaces only; a blob outlives its name and its workspace.

    Follows Blob, ATen/core/blob.h, and its Python class in caffe2/python/pybind_state.cc,
    PyTorch 1.8.1.

    >>> from bridge.caffe2.blobs.blob import Blob
    >>> blob = Blob()
    >>> blob.feed("text"), blob.fetch(), blob.IsType(bytes), blob.is_tensor()
    (True, b'text', True, False)

    Tensors are shared, NumPy arrays copied:

    >>> import numpy as np, torch
    >>> t = torch.zeros(2)
    >>> blob.feed(t), blob.to_torch() is t
    (True, True)
    >>> blob.feed(np.arange(3)), blob.fetch().tolist(), blob.tensor().shape
    (True, [0, 1, 2], (3,))
    >>> blob.as_tensor() is blob.tensor()
    True

    Its value, by type; another type replaces it in `GetMutable`:

    >>> from bridge import caffe2
    >>> blob.Get(caffe2.Tensor)
    caffe2.Tensor(sizes=[3], dtype=int64, device='cpu')
    >>> blob.GetMutable(bytes), blob
    (b'', <Blob that holds a string of 0 bytes>)
    >>> other = Blob()
    >>> other.Reset(b"other")
    >>> blob.swap(other)
    >>> blob.fetch()
    b'other'

    As Caffe2's message:

    >>> data = blob.serialize("x")
    >>> other.deserialize(data)
    >>> other.fetch()
    b'other'
    """

    __slots__ = ()

    def feed(self, value: Any, device_option: Any = None) -> bool:
        """Set the blob to `value`; return True.

        A torch tensor, an ``at.Tensor``, a ``caffe2.Tensor`` or another DLPack producer is shared,
        and must be contiguous. A NumPy array is copied, into the buffer of the blob's own tensor if
        the type is the same and it fits. `bytes` and `str` become a string, arrays of them a tensor
        of strings.

        `device_option` is the device that a NumPy array is copied to; a shared value must be there.

        Raises EnforceNotMet: `value` is not one of these or cannot be shared; the reason is its
        ``__cause__``. The blob is then unchanged.
        """
        if reports.outermost() and not isinstance(value, (bytes, str)):
            return reports.observe_call("Blob.feed", value, "blob", self.feed, value, device_option)
        feed(self, value, device_option, None, "Blob.feed")
        return True

    def fetch(self) -> Any:
        """Return a copy of the value: a tensor as a NumPy array, a string as `bytes`.

        A tensor of strings is an object array of `bytes`, a quantized tensor an `Int8Tensor`.
        Raises EnforceNotMet: the blob is empty, or holds another object.
        """
        return self._fetch(None, "Blob.fetch")

    def tensor(self) -> BlobTensor:
        """Return the blob's tensor, shared, to be changed in place.

        If the blob holds none, it gets an empty one on the CPU instead of its contents. Calls
        return the same object as long as it is in use.
        """
        if self._tensor is None or not self._tensor.defined():
            self._set_tensor(Tensor("cpu"), own=True)
        return self.as_tensor()

    def as_tensor(self) -> BlobTensor:
        """Return the blob's tensor as `tensor` does. Raises EnforceNotMet: it holds none."""
        tensor = self._tensor
        if tensor is None:
            raise EnforceNotMet(
                f"{self._describe(None)}, not a tensor; tensor() creates one.",
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

    def serialize(self, name: Any) -> bytes:
        """Return the value as a BlobProto under the name `name`, in Caffe2's bytes.

        The elements of a contiguous tensor on the CPU are copied once. Raises EnforceNotMet: the
        blob is empty, holds elements or an object that Caffe2 has no message for, or more than
        2 GiB, which protobuf does not read; or `name` is not a valid name. Follows SerializeBlob,
        caffe2/core/blob_serialization.cc.
        """
        from bridge.caffe2.blobs.serialize import serialize  # loaded lazily: few programs need it

        text = name_of(name, "Blob.serialize")
        return serialize(self, text, "Blob.serialize")

    def deserialize(self, serialized: Any) -> None:
        """Make the blob hold a copy of the contents of `serialized`, a BlobProto as bytes.

        A tensor goes into the buffer of the blob's own tensor if type and size fit. A chunk of a
        large tensor sets its part of the whole; chunks may come in any order.

        Raises EnforceNotMet: the bytes are not a BlobProto, contradict themselves, or hold a type
        that does not exist here. The blob is then unchanged. Follows DeserializeBlob,
        caffe2/core/blob_serialization.cc.
        """
        from bridge.caffe2.blobs.serialize import deserialize

        deserialize(self, serialized, "The blob", "Blob.deserialize")

    def IsType(self, T: Any) -> bool:
        """Return whether the blob holds a value of the type `T`.

        ``caffe2.Tensor`` or ``c10.tensor``: a tensor; `bytes` or ``c10.string``: a string; a
        registered class: an object of it. Raises EnforceNotMet: `T` is not a type.
        """
        meta = TypeMeta.Make(T)
        return meta is tensor_type if self._tensor is not None else meta is self._meta

    def Get(self, T: Any) -> Any:
        """Return the value, shared, if it is of the type `T`.

        Raises EnforceNotMet: it is of another type, or `T` is not a type.
        """
        if not self.IsType(T):
            raise EnforceNotMet(
                f"{self._describe(None)}, the caller expects {_name_of(T)}.",
                "Blob.Get",
                condition="IsType(T)",
            )
        return self._contents()

    def GetMutable(self, T: Any) -> Any:
        """Return the value, shared; a new ``T()`` replaces a value of another type.

        A string is `bytes`, which cannot be changed: use `feed` or `Reset`.

        Raises EnforceNotMet: `T` is not a type, or ``T()`` fails; the blob is then unchanged.
        """
        if not self.IsType(T):
            with wrapping(
                f"A new {_name_of(T)} cannot be created; set one by Reset(obj)", "Blob.GetMutable"
            ):
                new = _new(T)
            self.Reset(new)
        return self._contents()

    def Reset(self, obj: Any = None) -> None:
        """Make the blob hold `obj` itself, not a copy, and own it; None: make it empty.

        `obj` is a tensor of either wrapper, `bytes` or `str` (stored as UTF-8), or an object of a
        registered class. Raises EnforceNotMet: its class is not registered, or an ``at.Tensor`` is
        not contiguous; the blob is then unchanged.
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
        """Exchange the contents of two blobs. Raises EnforceNotMet: `other` is not a Blob."""
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
        """Do as `fetch`; `name` is the blob's name in errors, None if it has none."""
        contents = self._contents()
        if reports.outermost() and not isinstance(contents, bytes):
            source = _source(name)
            return reports.observe_call(caller, source, "numpy.ndarray", self._fetch, name, caller)
        try:
            if isinstance(contents, Tensor):
                return copied_to_numpy(contents)
            if isinstance(contents, bytes):
                return contents
            if isinstance(contents, Int8TensorCPU):
                return Int8Tensor(copied_to_numpy(contents.t), contents.scale, contents.zero_point)
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
        """Do as `to_torch`; `name` as in `_fetch`."""
        tensor = self._tensor
        if reports.outermost():
            source = _source(name)
            return reports.observe_call(
                caller, source, "torch.Tensor", self._to_torch, name, caller
            )
        if tensor is None:
            raise EnforceNotMet(
                f"{self._describe(name)}, which is not a tensor.", caller, condition="is_tensor()"
            )
        try:
            return tensor.to_torch()
        except Exception as cause:
            raise wrap_error(
                f"{self._describe(name)}, which torch does not support", caller, cause
            ) from cause

    def _size_bytes(self) -> int:
        """Return the bytes of a tensor, its strings included; 0 for anything else."""
        tensor = self._tensor
        if tensor is None or not tensor.defined():
            return 0
        nbytes: int = tensor.nbytes()
        if tensor.IsType(string_type) and tensor.storage_initialized():
            nbytes += sum(map(len, tensor.data(string_type)[:]))
        return nbytes


def _source(name: Any) -> str:
    """Return the name of the blob in an audit."""
    if isinstance(name, bytes):
        name = name.decode()
    return reports.Label("blob" if name is None else f"blob {str(name)!r}")


def _new(T: Any) -> Any:
    """Return a new object of the type `T`."""
    meta = TypeMeta.Make(T)
    if meta is tensor_type:
        return Tensor()
    if meta is string_type:
        return b""
    cls = T if isinstance(T, type) else meta.element_class
    if cls is None:
        raise TypeError(f"{meta} is not the type of a class")
    return cls()


def _type_of(obj: Any) -> TypeMeta:
    """Return the TypeMeta of the first registered class among the class of `obj` and its bases."""
    for cls in type(obj).__mro__[:-1]:
        try:
            return TypeMeta.Make(cls)
        except TypeError:
            continue
    raise EnforceTypeError(
        f"{type(obj).__qualname__} is not a class that a blob can hold; register it by "
        "c10.TypeMeta.Register(cls).",
        "Blob.Reset",
    )


def _name_of(T: Any) -> str:
    return T.__qualname__ if isinstance(T, type) else str(T)
