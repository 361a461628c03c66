# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from enum import IntEnum
from typing import Any, SupportsIndex

from typing_extensions import Self, disjoint_base

from bridge.typing import DeviceLike

class DeviceType(IntEnum):
    def __hash__(self) -> int: ...
    CPU = 1
    CUDA = 2
    CUDAHost = 3
    OpenCL = 4
    Vulkan = 7
    Metal = 8
    VPI = 9
    ROCM = 10
    ROCMHost = 11
    ExtDev = 12
    CUDAManaged = 13
    OneAPI = 14
    WebGPU = 15
    Hexagon = 16
    MAIA = 17
    Trn = 18
    TPU = 19
    TPUHost = 20
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __format__(self, spec: str, /) -> str: ...

@disjoint_base
class Device(str):
    def __new__(cls, spec: DeviceLike, index: int | None = None) -> Self: ...
    @property
    def type(self) -> DeviceType: ...
    def __call__(self) -> Self: ...
    @property
    def index(self) -> int: ...  # type: ignore[override]
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]: ...

def as_device(spec: DeviceLike) -> Device: ...
