# SPDX-License-Identifier: Apache-2.0
"""A TensorImpl on another device."""

from __future__ import annotations

from bridge.c10.device import Device, DeviceType
from bridge.c10.reports import report_copy
from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.device_memory import as_cpu_memory, copied_to, current_index

_PAGE_LOCKED = (DeviceType.CUDAHost, DeviceType.ROCMHost)


def to_device(impl: TensorImpl, device: Device, copy: bool | None = None) -> TensorImpl:
    """Return `impl` if it is on `device`, otherwise a copy there.

    Page-locked memory is the CPU's as well, so for "cpu" it is shared and not copied.
    Raises BufferError: a copy is needed and `copy` is False.
    """
    here = impl.device()
    index = current_index(device)
    if here.type == device.type and here.index == index:
        return impl
    if device.type == DeviceType.CPU and here.type in _PAGE_LOCKED and impl.dtype().is_pod:
        return as_cpu_memory(impl)
    if copy is False:
        raise BufferError(
            f"The tensor is on {here}; moving it to {device} needs a copy. Allow it with copy=None."
        )
    report_copy(impl.numel() * impl.dtype().itemsize, f"it is on {here} and goes to {device}")
    return copied_to(impl, device.type, index)
