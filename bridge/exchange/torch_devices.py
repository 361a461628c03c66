# SPDX-License-Identifier: Apache-2.0
"""Which of DLPack's devices this torch has.

torch itself does not ask: memory on a CUDA device that is not there becomes a tensor that fails
later, and memory of OpenCL ends the process (torch 2.13).
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.device import Device, DeviceType

_HOST = (DeviceType.CPU, DeviceType.CUDAHost, DeviceType.ROCMHost)
# The modules of torch that know how many devices there are; the one of ext_dev is whatever was
# registered under torch's "privateuse1".
_MODULES = {
    DeviceType.CUDA: "cuda",
    DeviceType.CUDAManaged: "cuda",
    DeviceType.ROCM: "cuda",
    DeviceType.Metal: "mps",
    DeviceType.OneAPI: "xpu",
    DeviceType.MAIA: "maia",
}


def lacks_memory(error: BaseException) -> bool:
    """Return whether torch failed because there was not enough memory.

    Only for memory of CUDA does it say so by the class of the error, too.
    """
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or "out of memory" in text  # CUDA's, page-locked memory, and allocators that users plug in
        or "allocate memory" in text  # memory of the CPU
        # Python's objects; the second by pybind11
        or text.startswith(("Failed to allocate", "Could not allocate"))
    )


def require_torch_device(kind: int, index: int) -> None:
    """Raise BufferError unless torch has a device of the DLPack type `kind` and number `index`."""
    import torch

    device_type = DeviceType(kind)
    if device_type in _HOST:
        return
    count = _count(torch, device_type)
    if max(index, 0) < count:
        return
    found = f"torch sees {count} of them, numbered from 0" if count else "torch sees none"
    raise BufferError(
        f"There is no such device here: {Device((kind, max(index, 0)))} ({found}). Only the "
        "library that the memory came from can copy it to the host."
    )


def _count(torch: Any, device_type: DeviceType) -> int:
    """Return the number of devices that torch has of a type."""
    name = _MODULES.get(device_type)
    if name == "cuda" and (device_type == DeviceType.ROCM) is not (torch.version.hip is not None):
        return 0  # torch is built for one of the two
    if device_type == DeviceType.ExtDev:
        name = torch._C._get_privateuse1_backend_name()
    module = None if name is None else getattr(torch, name, None)
    return 0 if module is None else int(module.device_count())
