# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.muji``: sums of blobs over GPUs, as operators of a net.

Follows caffe2/python/muji.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import muji
>>> muji.OnGPU(1).device_id
1
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import workspace
from bridge.caffe2.core import DeviceOption

__all__ = [
    "Allreduce",
    "Allreduce2",
    "Allreduce4",
    "Allreduce4Group2",
    "Allreduce8",
    "AllreduceFallback",
    "OnCPU",
    "OnGPU",
]


def OnGPU(gpu_id: int) -> Any:
    """Return the DeviceOption of a GPU."""
    return DeviceOption(workspace.GpuDeviceType, gpu_id)


def OnCPU() -> Any:
    """Return the DeviceOption of the CPU."""
    return DeviceOption(0)


def Allreduce(
    net: Any,
    blobs: Sequence[Any],
    reduced_affix: str = "_reduced",
    gpu_indices: Sequence[int] | None = None,
) -> Any:
    """Add operators that sum blobs of several GPUs, each sum on the GPU of its blob.

    Return references to the sums, named ``BLOB + reduced_affix``. gpu_indices: the GPU of each
    blob, by default 0, 1, ... Which operators are added depends on the GPUs that can access each
    other's memory. Raises EnforceNotMet: there is not one GPU for each blob.
    """
    gpus = list(range(len(blobs))) if gpu_indices is None else list(gpu_indices)
    if len(gpus) != len(blobs):
        raise EnforceNotMet(
            f"gpu_indices length and blobs length mismatch: {len(gpus)} vs {len(blobs)}",
            "muji.Allreduce",
        )
    pattern = workspace.GetGpuPeerAccessPattern()
    count = len(blobs)

    def reach(start: int, stop: int) -> bool:
        return pattern.shape[0] >= stop and bool(pattern[start:stop, start:stop].all())

    if count == 2 and reach(0, 2):
        reduce = Allreduce2
    elif count == 4 and reach(0, 4):
        reduce = Allreduce4
    elif count == 4 and reach(0, 2) and reach(2, 4):
        reduce = Allreduce4Group2
    elif count == 8 and reach(0, 8):
        reduce = Allreduce8
    else:
        reduce = AllreduceFallback
    return reduce(net, blobs, reduced_affix, gpus)


class _Sums:
    """The sums of blobs on several GPUs: adds operators that sum and copy between two of them."""

    def __init__(self, net: Any, blobs: Sequence[Any], affix: str, gpus: Sequence[int]) -> None:
        self.net = net
        self.blobs = blobs
        self.affix = affix
        self.gpus = gpus
        self.sums: list[Any] = [None] * len(blobs)

    def add(self, i: int, j: int) -> None:
        """Set sum i to the sum of the blobs i and j."""
        inputs = [self.blobs[i], self.blobs[j]]
        name = str(self.blobs[i]) + self.affix
        self.sums[i] = self.net.Add(inputs, name, device_option=OnGPU(self.gpus[i]))

    def add_sum(self, i: int, other: Any) -> None:
        """Add another sum, or its copy, to sum i."""
        device = OnGPU(self.gpus[i])
        self.sums[i] = self.sums[i].Add(other, self.sums[i], device_option=device)

    def copy_to(self, i: int, to: int) -> Any:
        """Return a copy of sum i on the GPU of another."""
        name = str(self.sums[i]) + "_copy"
        return self.sums[i].Copy([], name, device_option=OnGPU(self.gpus[to]))

    def send(self, i: int, j: int) -> None:
        """Set sum j to a copy of sum i."""
        name = self.sums[j] if self.sums[j] else str(self.blobs[j]) + self.affix
        self.sums[j] = self.sums[i].Copy([], name, device_option=OnGPU(self.gpus[j]))


def Allreduce2(
    net: Any, blobs: Sequence[Any], reduced_affix: str, gpu_indices: Sequence[int]
) -> Any:
    """Add the operators for two GPUs that access each other's memory; see `Allreduce`."""
    sums = _Sums(net, blobs, reduced_affix, gpu_indices)
    sums.add(0, 1)
    sums.send(0, 1)
    return tuple(sums.sums)


def _four(sums: _Sums, other: Any) -> Any:
    sums.add_sum(0, other)
    for i, j in ((0, 2), (0, 1), (2, 3)):
        sums.send(i, j)
    return tuple(sums.sums)


def Allreduce4(
    net: Any, blobs: Sequence[Any], reduced_affix: str, gpu_indices: Sequence[int]
) -> Any:
    """Add the operators for four GPUs that access each other's memory; see `Allreduce`."""
    sums = _Sums(net, blobs, reduced_affix, gpu_indices)
    sums.add(0, 1)
    sums.add(2, 3)
    return _four(sums, sums.sums[2])


def Allreduce4Group2(
    net: Any, blobs: Sequence[Any], reduced_affix: str, gpu_indices: Sequence[int]
) -> Any:
    """Add the operators for two pairs of GPUs, each with access within; see `Allreduce`."""
    sums = _Sums(net, blobs, reduced_affix, gpu_indices)
    sums.add(0, 1)
    sums.add(2, 3)
    return _four(sums, sums.copy_to(2, 0))


def Allreduce8(
    net: Any, blobs: Sequence[Any], reduced_affix: str, gpu_indices: Sequence[int]
) -> Any:
    """Add the operators for eight GPUs that access each other's memory; see `Allreduce`."""
    sums = _Sums(net, blobs, reduced_affix, gpu_indices)
    for i in (0, 2, 4, 6):
        sums.add(i, i + 1)
    for i in (0, 4):
        sums.add_sum(i, sums.sums[i + 2])
    sums.add_sum(0, sums.copy_to(4, 0))
    for i, j in ((0, 4), (0, 2), (4, 6), (0, 1), (2, 3), (4, 5), (6, 7)):
        sums.send(i, j)
    return sums.sums


def AllreduceFallback(
    net: Any, blobs: Sequence[Any], reduced_affix: str, gpu_indices: Sequence[int]
) -> Any:
    """Add the operators for any GPUs: all is summed on the first one; see `Allreduce`."""
    first = OnGPU(gpu_indices[0])
    total = blobs[0]
    if reduced_affix:
        total = net.Copy(blobs[0], str(blobs[0]) + reduced_affix, device_option=first)
    sums = [total]
    for blob in blobs[1:]:
        temporary = net.Copy(blob, str(total) + "_temp_copy", device_option=first)
        sums[0] = net.Add([temporary, sums[0]], sums[0], device_option=first)
    for blob, gpu in zip(blobs[1:], gpu_indices[1:], strict=True):
        name = str(blob) + reduced_affix
        sums.append(net.Copy(sums[0], name, device_option=OnGPU(gpu)))
    return sums
