# SPDX-License-Identifier: Apache-2.0
"""What a blob makes of the value that it is fed: by the value's type, shared or copied.

What is fed most, torch tensors and NumPy arrays of the shape and type that there is already, `put`
deals with in blob_core; the rest comes here. These functions raise whatever the reason is; who
calls them names the blob.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from bridge.at import Tensor as AtTensor
from bridge.c10 import Device, DeviceType, EnforceNotMet
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.blobs.copies import copy_into, tensor_of_array
from bridge.caffe2.blobs.core import put, set_put_by_type
from bridge.caffe2.blobs.strings import STRING_KINDS
from bridge.caffe2.tensor.tensor import Tensor
from bridge.exchange.import_tensor import import_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from bridge.caffe2.blobs.blob import Blob

__all__ = ["feed_refusal", "is_array", "put_array", "put_device_copy", "put_on"]

# Caffe2's numbers of device types, which are not DLPack's; others have no memory here.
_CAFFE2_DEVICE_TYPES = {0: DeviceType.CPU, 1: DeviceType.CUDA}

_wrap = Tensor._wrap


def put_on(blob: Blob, value: Any, device_option: Any) -> None:
    """Do as `put`, an array going to the device that `device_option` names.

    What is shared stays where it is, so the option may but say so; strings have no device.
    """
    device = _device_of_option(device_option)
    if device is None or isinstance(value, (bytes, str)):
        put(blob, value)
    elif not is_array(value):
        _put_shared_on(blob, value, device)
    elif device.type == DeviceType.CPU:
        put_array(blob, value)
    elif value.dtype.kind in STRING_KINDS:
        raise EnforceNotMet(f"strings live on the CPU only, not on {device}")
    else:
        put_device_copy(blob, Tensor(tensor_of_array(value), device))


def put_array(blob: Blob, array: np.ndarray[Any, Any]) -> None:
    """Copy a NumPy array, into the buffer of the blob's own tensor where it fits."""
    tensor = blob._tensor
    if blob._own and tensor is not None and tensor.defined() and tensor.GetDevice() == "cpu":
        copy_into(tensor, array)
    else:
        blob._replace(tensor_of_array(array))


def feed_refusal(subject: str, value: Any, caller: str, cause: Exception) -> EnforceNotMet:
    """Make the EnforceNotMet of a feed of `value` that `cause` stopped."""
    kind = type(value)
    return wrap_error(
        f"{subject} cannot be fed this {kind.__module__}.{kind.__qualname__}", caller, cause
    )


def is_array(value: object) -> bool:
    """Return whether `value` is a NumPy array, without importing NumPy to find out."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _put_at(blob: Blob, value: AtTensor) -> None:
    blob._hold_tensor(Tensor(value), own=False)


def _put_caffe2(blob: Blob, value: Tensor) -> None:
    blob._hold_tensor(value.UnsafeSharedInstance(), own=False)


def _put_producer(blob: Blob, value: Any) -> None:
    blob._hold_tensor(_wrap(import_tensor(value)), own=False)


def _put_message(blob: Blob, value: Any) -> None:
    """Copy the numbers of a TensorProto, as an array of them would be."""
    from bridge.caffe2.utils import Caffe2TensorToNumpyArray

    put_array(blob, Caffe2TensorToNumpyArray(value))


def _put_string(blob: Blob, value: bytes | str) -> None:
    blob._hold_string(value)


# How values of a type are fed, as `_route_of` found.
_ROUTES: dict[type, Callable[[Blob, Any], None]] = {
    AtTensor: _put_at,
    Tensor: _put_caffe2,
    bytes: _put_string,
    str: _put_string,
}


def _route_of(value: Any) -> Callable[[Blob, Any], None]:
    """Find how a value of a type not seen before is fed, and remember it.

    Only a type that its module holds on to is remembered, so that none is kept from its end.
    """
    kind = type(value)
    lasting = getattr(sys.modules.get(kind.__module__), kind.__name__, None) is kind
    route: Callable[[Blob, Any], None]
    if isinstance(value, Tensor):
        route = _put_caffe2
    elif isinstance(value, AtTensor):
        route = _put_at
    elif isinstance(value, (bytes, str)):
        route = _put_string
    elif is_array(value):
        route = put_array
    elif _is_producer(kind):
        route = _put_producer
    elif getattr(getattr(kind, "DESCRIPTOR", None), "name", None) == "TensorProto":
        route = _put_message
    else:
        raise EnforceTypeError(
            "it is neither a tensor, a NumPy array nor a string; bridge.asarray(value) makes a "
            "tensor of numbers, lists and buffers"
        )
    if lasting:
        _ROUTES[kind] = route
    return route


def _is_producer(kind: type) -> bool:
    """Return whether objects of the type export memory, by DLPack or CUDA's interface."""
    return (
        hasattr(kind, "__dlpack__")
        or hasattr(kind, "__dlpack_c_exchange_api__")
        or hasattr(kind, "__cuda_array_interface__")
        or kind.__name__ == "PyCapsule"
    )


def _put_shared_on(blob: Blob, value: Any, device: Device) -> None:
    """Do as `put`, if what is shared lies on `device` already."""
    aside = type(blob)()
    put(aside, value)
    shared = aside.Get(Tensor)
    here = shared.GetDevice()
    if here.type != device.type or (device.index >= 0 and here.index != device.index):
        raise EnforceNotMet(
            f"what is shared stays on {here}, and device_option names {device}; copy it there "
            "first, or leave device_option out",
            condition="value.device() == device_option",
        )
    blob._hold_tensor(shared, own=False)


def put_device_copy(blob: Blob, copy: Tensor) -> None:
    """Hold the elements of `copy`, which is new and on another device than the CPU."""
    tensor = blob._tensor
    if (
        blob._own
        and tensor is not None
        and tensor.defined()
        and tensor.GetDevice() == copy.GetDevice()
        and tensor.unsafeGetTensorImpl().owns_memory()
        and tensor.IsType(copy.dtype())
        and tensor.sizes() == copy.sizes()
    ):
        tensor.CopyFrom(copy)
    else:
        blob._replace(copy)


def _device_of_option(option: Any) -> Device | None:
    """Read a `device_option`: None, whatever names a device, or an object like Caffe2's message.

    The latter has `device_type`, by Caffe2's numbers (0 = CPU, 1 = CUDA), and `device_id`.

    Raises EnforceNotMet, also a TypeError or ValueError: it names no device that can hold tensors.
    """
    if option is None:
        return None
    number = getattr(option, "device_type", None)
    if number is None:
        return Device(option)
    device_type = _CAFFE2_DEVICE_TYPES.get(number) if isinstance(number, int) else None
    if device_type is None:
        raise EnforceValueError(
            f"device_option.device_type is {number!r}; tensors live on 0 (CPU) and 1 (CUDA)",
            condition="device_type in (0, 1)",
        )
    if device_type is DeviceType.CPU:
        return Device(DeviceType.CPU)
    return Device(device_type, getattr(option, "device_id", 0))


def _put_by_type(blob: Blob, value: Any) -> None:
    (_ROUTES.get(type(value)) or _route_of(value))(blob, value)


set_put_by_type(_put_by_type)
