# SPDX-License-Identifier: Apache-2.0
"""CuPy, whose arrays are in CUDA memory, have any strides and are always writable.

CuPy arrays are imported through their ``__dlpack__``, without this adapter.
"""

from __future__ import annotations

from typing import Any

import cupy

from bridge.c10.copy import reported_copy
from bridge.c10.device import Device, DeviceType
from bridge.c10.reports import ASKED, report_copy
from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.device_memory import to_device
from bridge.exchange.dlpack_capsule import DLPackProducer
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.refusal import reason_of
from bridge.exchange.registry import register


def is_cuda(impl: TensorImpl) -> bool:
    """Return whether CuPy can share the memory."""
    return impl.device().type in (DeviceType.CUDA, DeviceType.CUDAManaged)


def export(x: Any, copy: bool | None) -> Any:
    """Return a ``cupy.ndarray`` of the memory of `x`; see bridge.to_cupy."""
    if isinstance(x, cupy.ndarray):
        if copy is not True:
            return x
        report_copy(x.nbytes, ASKED)
        return x.copy()
    impl = import_tensor(x, None, False if copy is False else None)
    if not is_cuda(impl):
        impl = to_device(impl, Device("cuda"), copy)
    elif copy is True:
        impl = reported_copy(impl, ASKED, "to_cupy")
    elif impl.get_storage().readonly:
        reason = "the memory is read-only, which a CuPy array cannot be"
        impl = reported_copy(impl, reason, "to_cupy", copy)
    try:
        return cupy.from_dlpack(DLPackProducer(impl))
    except (BufferError, MemoryError):
        raise
    except Exception as error:
        raise BufferError(
            f"CuPy does not take a tensor of {impl.dtype()}: {reason_of(error)}"
        ) from error


register("cupy", types=("cupy.ndarray",), exporter=export, export_takes_copy=True)
