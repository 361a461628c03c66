# SPDX-License-Identifier: Apache-2.0
"""Feeding a blob, also with a device option, and the error of a feed that failed."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10 import Device, DeviceType, EnforceNotMet
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.device_option import asked_device
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.wrapped_errors import wrap_error
from bridge.caffe2.blobs.copies import tensor_of_array
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.put import put
from bridge.caffe2.blobs.put_by_type import is_array, put_array, put_device_copy
from bridge.caffe2.blobs.string_arrays import STRING_KINDS
from bridge.caffe2.tensor.tensor import Tensor


def feed(blob: BlobCore, value: Any, device_option: Any, name: str | None, caller: str) -> None:
    """Set `blob` to `value`; a NumPy array goes to the device that `device_option` specifies.

    `name` is the name of the blob in an error, None if it has none. Raises EnforceNotMet: `value`
    cannot be fed; the reason is its ``__cause__``. The blob is then unchanged.
    """
    try:
        if device_option is None:
            put(blob, value)
        else:
            _put_on(blob, value, device_option)
    except Exception as cause:
        raise feed_error(name, value, caller, cause) from cause


def _put_on(blob: BlobCore, value: Any, device_option: Any) -> None:
    """Do as `put`; an array or list goes to the device that `device_option` specifies.

    Values that are shared must be on that device already; strings have no device. Raises as `put`,
    or EnforceNotMet: an unknown device, or a value that cannot be there.
    """
    device = _device_of(device_option)
    if isinstance(value, (bytes, str)):
        put(blob, value)
    elif not is_array(value):
        _put_tensor_on(blob, value, device)
    elif device.type == DeviceType.CPU:
        put_array(blob, value)
    elif value.dtype.kind in STRING_KINDS:
        _refuse_strings(device)
    else:
        put_device_copy(blob, Tensor(tensor_of_array(value), device))


def feed_error(name: str | None, value: Any, caller: str, cause: Exception) -> EnforceNotMet:
    """Return the EnforceNotMet of a feed of `value` that failed because of `cause`."""
    subject = "The blob" if name is None else f"Blob {name!r}"
    cls = type(value)
    return wrap_error(
        f"{subject} cannot be fed this {cls.__module__}.{cls.__qualname__}", caller, cause
    )


def _refuse_strings(device: Device) -> None:
    raise EnforceNotMet(f"strings are on the CPU only, not on {device}")


def _put_tensor_on(blob: BlobCore, value: Any, device: Device) -> None:
    """Share `value`, which must be on `device`; copy lists and the like there."""
    fed = BlobCore()
    put(fed, value)
    tensor = fed._tensor
    assert tensor is not None
    here = tensor.GetDevice()
    if here.type != device.type or (device.index >= 0 and here.index != device.index):
        if fed._own:
            if not tensor.dtype().is_pod:
                _refuse_strings(device)
            blob._replace(Tensor(tensor, device))
            return
        raise EnforceNotMet(
            f"a shared value stays on {here}, and device_option names {device}; copy it there "
            "first, or omit device_option",
            condition="value.device() == device_option",
        )
    if fed._own:
        blob._replace(tensor)
    else:
        blob._set_tensor(tensor, own=False)


def _device_of(option: Any) -> Device:
    """Return the device that a `device_option` specifies.

    `option` is whatever `Device` takes, an object with the fields of Caffe2's DeviceOption,
    `device_type` and `device_id`, or the bytes of one, as ``C.feed_blob`` takes them. Raises
    EnforceNotMet, also a TypeError or ValueError: it does not specify a device that can hold
    tensors.
    """
    if isinstance(option, bytes):
        option = as_message(option, "DeviceOption", "feed_blob")
    number = getattr(option, "device_type", None)
    if number is None:
        return Device(option)
    device = asked_device(number, getattr(option, "device_id", 0))
    if device is None:
        raise EnforceValueError(
            f"device_option.device_type is {number!r}; tensors live on 0 (CPU) and 1 (CUDA)",
            condition="device_type in (0, 1)",
        )
    return device
