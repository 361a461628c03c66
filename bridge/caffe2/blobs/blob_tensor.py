# SPDX-License-Identifier: Apache-2.0
"""BlobTensor: the tensor of a blob, for Python operators that change it in place."""

from __future__ import annotations

from collections.abc import Iterable

from bridge import c10
from bridge.annotation import Any, Array
from bridge.c10 import DeviceType, EnforceNotMet, TypeMeta, reports
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.blobs.copies import copied_to_numpy, prepare
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.put_by_type import is_array, put_array
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    import torch


class BlobTensor:
    """The tensor that a blob holds, from ``blob.tensor()``.

    It remains valid, with its values, when the blob gets other contents.

    Follows the class TensorCPU of caffe2/python/pybind_state.cc, PyTorch 1.8.1.

    >>> from bridge.caffe2 import core
    >>> from bridge.caffe2.blobs.blob import Blob
    >>> blob = Blob()
    >>> tensor = blob.tensor()
    >>> tensor.init([2, 3], core.DataType.FLOAT)
    >>> tensor.data[:] = 7
    >>> blob.fetch().tolist()
    [[7.0, 7.0, 7.0], [7.0, 7.0, 7.0]]
    >>> tensor.reshape([6])
    >>> tensor.shape, tensor.to_torch().shape
    ((6,), torch.Size([6]))
    >>> import numpy as np
    >>> tensor.feed(np.arange(2))
    >>> tensor.fetch().tolist()
    [0, 1]
    """

    __slots__ = ("__weakref__", "_blob", "_tensor")

    _blob: BlobCore
    _tensor: Tensor

    def __init__(self) -> None:
        raise TypeError("A BlobTensor is created by a blob: blob.tensor().")

    @classmethod
    def _of(cls, blob: BlobCore, tensor: Tensor) -> BlobTensor:
        handle = cls.__new__(cls)
        handle._blob = blob
        handle._tensor = tensor
        return handle

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes, one int per dimension."""
        return tuple(self._tensor.sizes())

    @property
    def data(self) -> Array:
        """The elements as a NumPy array, shared; allocated if they are not yet.

        A tensor without a type becomes float32. Strings, and elements that are not on the CPU, are
        copied. Raises EnforceNotMet: NumPy does not support the elements.
        """
        if reports.outermost():
            get = type(self).data.__get__
            return reports.observe_call("BlobTensor.data", self._tensor, "numpy.ndarray", get, self)
        tensor = self._tensor
        with wrapping("NumPy does not support the tensor", "BlobTensor.data"):
            if not tensor.dtype():
                tensor.mutable_data(c10.float32)
            elif not tensor.storage_initialized():
                tensor.raw_mutable_data()
            if tensor.dtype().is_pod and tensor.GetDeviceType() == DeviceType.CPU:
                return tensor.numpy()
            return copied_to_numpy(tensor)

    def init(self, dims: Iterable[int], dtype: Any) -> None:
        """Set the sizes and the type, and allocate memory, which is not initialized.

        `dtype` is a number of ``core.DataType``, or anything else that specifies an element type.
        The buffer is kept if it has the same type, is large enough, and is the bridge's own.

        Raises EnforceNotMet: invalid sizes, an unknown type, strings (use `feed`), or not enough
        memory; the tensor is then unchanged.
        """
        caller = "BlobTensor.init"
        meta = _type_for_init(dtype, caller)
        with wrapping(f"The tensor cannot be of sizes {dims}", caller):
            prepare(self._tensor, list(dims), meta)

    def feed(self, array: Array) -> None:
        """Copy a NumPy array into the tensor, which gets its shape and type.

        The buffer is kept if it has the same type, is large enough, and is the bridge's own;
        memory that came from outside is not written.

        Raises EnforceNotMet: not a NumPy array, elements of an unknown type, or the blob holds
        something else now. The tensor is then unchanged.
        """
        caller = "BlobTensor.feed"
        if reports.outermost():
            return reports.observe_call(caller, array, "blob", self.feed, array)
        if not is_array(array):
            raise EnforceTypeError(
                f"A BlobTensor is fed NumPy arrays, not {type(array).__name__}; feed other tensors "
                "to the blob.",
                caller,
                condition="isinstance(array, numpy.ndarray)",
            )
        blob = self._blob
        if blob._tensor is not self._tensor:
            raise EnforceNotMet(
                "The blob holds something else now; feed the blob, or take blob.tensor() again.",
                caller,
            )
        with wrapping("The tensor cannot be fed this array", caller):
            put_array(blob, array)

    def fetch(self) -> Array:
        """Return the elements as a new NumPy array, copied; strings as an object array of `bytes`.

        Raises EnforceNotMet: nothing is allocated, or NumPy does not support the elements.
        """
        if reports.outermost():
            source = reports.Label("blob")
            return reports.observe_call("BlobTensor.fetch", source, "numpy.ndarray", self.fetch)
        with wrapping("The tensor cannot be fetched", "BlobTensor.fetch"):
            return copied_to_numpy(self._tensor)

    def reshape(self, dims: Iterable[int]) -> None:
        """Resize the tensor, as `caffe2.Tensor.Resize` does: the number of elements may change.

        The elements stay if the buffer is large enough. Raises EnforceNotMet: invalid sizes.
        """
        with wrapping(f"The tensor cannot be of sizes {dims}", "BlobTensor.reshape"):
            self._tensor.Resize(list(dims))

    def to_torch(self) -> torch.Tensor:
        """Return the tensor as a ``torch.Tensor``, shared; the one that was fed is returned itself.

        Raises EnforceNotMet: torch does not support it.
        """
        with wrapping("torch does not support the tensor", "BlobTensor.to_torch"):
            return self._tensor.to_torch()

    def __repr__(self) -> str:
        return f"<BlobTensor of {self._tensor!r}>"


def _type_for_init(dtype: Any, caller: str) -> TypeMeta:
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        from bridge.caffe2.base.data_types import ELEMENT_TYPES

        meta = ELEMENT_TYPES.get(dtype)
        if meta is None or not meta.is_pod:
            raise EnforceValueError(
                f"init does not take the type number {dtype}, only the core.DataType of numbers. "
                "Use feed for strings.",
                caller,
            )
        return meta
    meta = TypeMeta.Make(dtype)
    if not meta.is_pod:
        raise EnforceTypeError(
            f"init does not take elements of {meta}. Use feed.", caller, condition="is_pod"
        )
    return meta
