# SPDX-License-Identifier: Apache-2.0
"""Comparing DeviceOptions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["IsGPUDeviceType", "device_equal", "device_option_equal"]

_CPU, _CUDA, _HIP = 0, 1, 6


def IsGPUDeviceType(device_type: int) -> bool:
    """Return whether Caffe2's number of a device type is that of CUDA or HIP."""
    return device_type in (_CUDA, _HIP)


def device_option_equal(
    opt1: Any, opt2: Any, ignore_node_name: bool = True, ignore_random_seed: bool = True
) -> bool:
    """Return whether two DeviceOptions, or None, name the same device."""
    if not opt1 or not opt2:
        return bool(opt1 == opt2)
    if not ignore_node_name and opt1.node_name != opt2.node_name:
        return False
    if not ignore_random_seed and opt1.random_seed != opt2.random_seed:
        return False
    if not opt1.device_type or not opt2.device_type:
        return not opt1.device_type and not opt2.device_type
    return bool(opt1.device_id == opt2.device_id)


def device_equal(src: Any, dst: Any) -> bool:
    """Return whether two DeviceOptions have the same type and number, said or not."""
    return bool(src.device_type == dst.device_type and src.device_id == dst.device_id)
