# SPDX-License-Identifier: Apache-2.0
"""DLPackTensor: the tensor of a blob, for Python operators on DLPack tensors."""

from __future__ import annotations

from collections.abc import Iterable

from bridge import c10
from bridge.annotation import Any
from bridge.c10 import TypeMeta
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.tensor.tensor import Tensor


class DLPackTensor:
    """The tensor of a blob, to be read and replaced without copying.

    Any library reads it as a DLPack tensor, by ``from_dlpack(x)`` or from the capsule ``x.data``.
    Follows DLPackWrapper, caffe2/python/pybind_state_dlpack.h, PyTorch 1.8.1.

    >>> import torch
    >>> from bridge.caffe2.blobs.blob import Blob
    >>> blob = Blob()
    >>> x = DLPackTensor(blob)
    >>> x.feed(torch.tensor([[1.0, 2.0]]))
    >>> torch.from_dlpack(x).mul_(2).tolist(), blob.fetch().tolist(), x._shape
    ([[2.0, 4.0]], [[2.0, 4.0]], [1, 2])
    """

    __slots__ = ("__weakref__", "_blob")

    def __init__(self, blob: Blob) -> None:
        self._blob = blob

    def _allocated(self) -> Tensor:
        tensor = self._blob._tensor
        if tensor is None:
            tensor = self._blob.GetMutable(c10.tensor)
            if not tensor.defined():
                tensor = Tensor("cpu")
                self._blob.Reset(tensor)
        if not tensor.storage_initialized() or not tensor.dtype():
            tensor.mutable_data(tensor.dtype() or c10.float32)
        return tensor

    @property
    def data(self) -> Any:
        """A DLPack capsule of the tensor, which shares its memory; float32 if it has no type yet.

        Raises BufferError: DLPack has no such element type.
        """
        return self._allocated().__dlpack__()

    def __dlpack__(self, **options: Any) -> Any:
        """Return a DLPack capsule of the tensor, which shares its memory."""
        return self._allocated().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the type and the number of the device, as DLPack counts them."""
        place: tuple[int, int] = self._allocated().__dlpack_device__()
        return place

    def feed(self, value: Any) -> None:
        """Let the blob hold a DLPack tensor, a capsule or an object that has one.

        It is shared, or copied if its elements are not in row-major order. Raises EnforceNotMet: as
        `Blob.feed`.
        """
        self._blob.feed(value)

    @property
    def _shape(self) -> list[int]:
        """The sizes."""
        return list(self._allocated().sizes())

    def _reshape(self, dims: Iterable[int]) -> None:
        """Set the sizes; elements are allocated by `data`."""
        tensor = self._allocated()
        dtype: TypeMeta = tensor.dtype()
        tensor.Resize(list(dims))
        tensor.mutable_data(dtype)
