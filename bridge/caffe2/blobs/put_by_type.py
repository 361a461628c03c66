# SPDX-License-Identifier: Apache-2.0
"""Feeding a blob by the type of the value, which is shared or copied.

The functions raise the reason of a failure; their callers name the blob.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from bridge.annotation import Any, Array
from bridge.at import Tensor as AtTensor
from bridge.c10 import Device
from bridge.c10.copy import reported_copy
from bridge.caffe2.blobs.copies import copy_into, is_on, keeps_buffer, tensor_of_array
from bridge.caffe2.tensor.tensor import Tensor
from bridge.exchange.import_tensor import import_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.blobs.core import BlobCore

_CPU = Device("cpu")

_wrap = Tensor._wrap


def put_by_type(blob: BlobCore, value: Any) -> None:
    """Make `blob` hold `value`: a tensor shared, an array copied, a string as `bytes`."""
    (_ROUTES.get(type(value)) or _route_of(value))(blob, value)


def put_array(blob: BlobCore, array: Array) -> None:
    """Copy a NumPy array, into the buffer of the blob's own tensor if it fits."""
    tensor = blob._own_tensor()
    if tensor is not None and is_on(tensor, _CPU):
        copy_into(tensor, array)
    else:
        blob._replace(tensor_of_array(array))


def put_device_copy(blob: BlobCore, copy: Tensor) -> None:
    """Make `blob` hold the elements of `copy`, which is new and not on the CPU.

    The blob's own tensor gets them if it is on the same device, of the same type and large enough.
    """
    tensor = blob._own_tensor()
    if (
        tensor is not None
        and is_on(tensor, copy.GetDevice())
        and tensor.IsType(copy.dtype())
        and keeps_buffer(tensor, copy.nbytes())
    ):
        tensor.CopyFrom(copy)
    else:
        blob._replace(copy)


def is_array(value: object) -> bool:
    """Return whether `value` is a NumPy array, without importing NumPy."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _put_at(blob: BlobCore, value: AtTensor) -> None:
    blob._set_tensor(Tensor(value), own=False)


def _put_caffe2(blob: BlobCore, value: Tensor) -> None:
    blob._set_tensor(value.UnsafeSharedInstance(), own=False)


def _put_producer(blob: BlobCore, value: Any) -> None:
    try:
        impl = import_tensor(value)
    except BufferError:
        from bridge.python_values import strings_of

        strings = strings_of(value)
        if strings is None:
            raise
        _put_any(blob, strings)
    else:
        blob._set_tensor(_wrap(impl), own=False)


def _put_any(blob: BlobCore, value: Any) -> None:
    """Share a tensor of any library, or copy Python numbers and strings, as `bridge.asarray`."""
    from bridge.python_values import as_tensor

    impl = as_tensor(value, None, None, None).unsafeGetTensorImpl()
    if not impl.is_contiguous():
        impl = reported_copy(impl, "Caffe2-style tensors are contiguous", "FeedBlob")
    if impl.owns_memory():
        blob._replace(_wrap(impl))
    else:
        blob._set_tensor(_wrap(impl), own=False)


def _put_message(blob: BlobCore, value: Any) -> None:
    """Copy the values of a TensorProto, as an array of them."""
    from bridge.caffe2.blobs.tensor_proto import Caffe2TensorToNumpyArray

    put_array(blob, Caffe2TensorToNumpyArray(value))


def _put_string(blob: BlobCore, value: bytes | str) -> None:
    blob._set_string(value)


# The function that feeds values of a type.
_ROUTES: dict[type, Callable[[BlobCore, Any], None]] = {
    AtTensor: _put_at,
    Tensor: _put_caffe2,
    bytes: _put_string,
    str: _put_string,
}


def _route_of(value: Any) -> Callable[[BlobCore, Any], None]:
    """Return the function that feeds values of this new type, and cache it.

    Types that are not attributes of their modules are not cached: the cache would keep them alive.
    """
    cls = type(value)
    route: Callable[[BlobCore, Any], None]
    if isinstance(value, Tensor):
        route = _put_caffe2
    elif isinstance(value, AtTensor):
        route = _put_at
    elif isinstance(value, (bytes, str)):
        route = _put_string
    elif is_array(value):
        route = put_array
    elif str(getattr(getattr(cls, "DESCRIPTOR", None), "full_name", "")) == "caffe2.TensorProto":
        route = _put_message
    elif hasattr(cls, "__dlpack__"):
        route = _put_producer
    else:
        route = _put_any
    if getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls:
        _ROUTES[cls] = route
    return route
