# SPDX-License-Identifier: Apache-2.0
"""The GPUs of the machine, as torch sees them, and its NUMA nodes. Loads torch, if installed.

Follows caffe2/python/workspace.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from bridge.annotation import Any, Array
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.names import listed

# Caffe2's number of the device type of GPUs, whether or not there is one; see NumGpuDevices.
GpuDeviceType = 1


def NumCudaDevices() -> int:
    """Count the CUDA devices that torch can use; 0 without torch."""
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


NumGpuDevices = NumCudaDevices


# Whether operators can run on GPUs, found out once: the real Caffe2 is built for them or is not.
has_cuda_support: bool = NumCudaDevices() > 0
has_hip_support: bool = False
has_gpu_support: bool = has_cuda_support
# Whether memory is watched by AddressSanitizer.
is_asan: bool = False


def GetCUDAVersion() -> int:
    """Return the version of CUDA as a number, 12040 for 12.4; 0 without CUDA."""
    if not has_cuda_support:
        return 0
    import torch

    major, _, minor = str(torch.version.cuda or "0.0").partition(".")
    return 1000 * int(major) + 10 * int(minor.partition(".")[0] or 0)


def GetCuDNNVersion() -> int:
    """Return the version of cuDNN as a number; 0 without CUDA."""
    if not has_cuda_support:
        return 0
    import torch

    return int(torch.backends.cudnn.version() or 0)  # type: ignore[no-untyped-call]


def GetDeviceProperties(deviceid: int) -> dict[str, Any] | None:
    """Return the name, the version and the bytes of memory of a GPU; None without CUDA.

    Raises EnforceNotMet, also a ValueError: there is no GPU of that number.
    """
    if not has_cuda_support:
        return None
    import torch

    _check_gpu(deviceid, "GetDeviceProperties")
    found = torch.cuda.get_device_properties(deviceid)
    return {
        "name": found.name,
        "major": found.major,
        "minor": found.minor,
        "totalGlobalMem": found.total_memory,
    }


def GetGpuPeerAccessPattern() -> Array:
    """Return bools (GPUs, GPUs): whether GPU i can access the memory of j; empty without CUDA."""
    import numpy as np

    if not has_cuda_support:
        return np.array([])
    import torch

    count = NumCudaDevices()
    return np.array(
        [
            [i == j or torch.cuda.can_device_access_peer(i, j) for j in range(count)]
            for i in range(count)
        ]
    )


def GetGPUMemoryInfo(deviceid: int | None = None) -> tuple[int, int] | None:
    """Return the free and the total bytes of a GPU's memory; None without CUDA.

    Raises EnforceNotMet, also a ValueError: there is no GPU of that number.
    """
    if not has_cuda_support:
        return None
    import torch

    if deviceid is not None:
        _check_gpu(deviceid, "GetGPUMemoryInfo")
    free, total = torch.cuda.mem_get_info(deviceid)
    return int(free), int(total)


def _check_gpu(number: Any, caller: str) -> None:
    if not isinstance(number, int) or not 0 <= number < NumCudaDevices():
        raise EnforceValueError(
            f"There is no GPU {number!r}; there are {NumCudaDevices()}.", caller
        )


def IsNUMAEnabled() -> bool:
    """Return False: memory is not bound to NUMA nodes."""
    return False


def GetNumNUMANodes() -> int:
    """Return -1: NUMA is not enabled."""
    return -1


_CUDA = 1  # Caffe2's number of the device type
_COPIES = ("CopyCPUToGPU", "CopyGPUToCPU")


def without_absent_gpus(message: Any, caller: str) -> Any:
    """Return a NetDef without the device options of GPUs that torch does not see.

    A module, or a file, runs where its tensors are. Copies to and from such a GPU are copies. The
    result is a copy, and a warning names the GPUs; it is `message` itself if there are none.
    """
    count = NumCudaDevices()
    absent = {owner.device_option.device_id for owner in _owners(message, count)}
    if not absent:
        return message
    made = type(message)()
    made.CopyFrom(message)
    for owner in list(_owners(made, count)):
        owner.ClearField("device_option")
        for operator in owner.op if owner.DESCRIPTOR.name == "NetDef" else (owner,):
            inherits = operator is owner or not operator.HasField("device_option")
            if inherits and operator.type in _COPIES:  # there are no two devices to copy between
                operator.type = "Copy"
    warnings.warn(
        f"{caller}: net {message.name!r} is to run on {listed([f'cuda:{i}' for i in absent])}, and "
        "torch sees no such device; these device options are dropped.",
        stacklevel=4,
    )
    return made


def _owners(net: Any, count: int) -> Iterator[Any]:
    """Yield the nets and operators with the option of a GPU whose number is not below `count`."""
    for owner in (net, *net.op):
        option = owner.device_option
        if option.device_type == _CUDA and option.device_id >= count:
            yield owner
    for operator in net.op:
        for argument in operator.arg:
            if argument.HasField("n"):
                yield from _owners(argument.n, count)
            for one in argument.nets:
                yield from _owners(one, count)
