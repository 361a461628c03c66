# SPDX-License-Identifier: Apache-2.0
"""The devices of Caffe2's messages: the numbers of their types, and comparing DeviceOptions."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10 import Device, DeviceType
from bridge.c10.errors import EnforceValueError

# The names of the device types, by Caffe2's number, which is not DLPack's. Follows DeviceTypeProto,
# caffe2/proto/caffe2.proto, PyTorch 1.8.1.
_NAMES = ("CPU", "CUDA", "MKLDNN", "OPENGL", "OPENCL", "IDEEP", "HIP", "FPGA", "MSNPU", "XLA")
CPU, CUDA, HIP = 0, 1, 6
_CPU = Device(DeviceType.CPU)
# MKLDNN and IDEEP: the CPU by Intel's library, which Caffe2 keeps apart since its tensors had a
# layout of their own; torch calls that library where it is faster.
_ON_CPU = (2, 5)


def device_kind(number: int) -> str | None:
    """Return the name of the device type with Caffe2's number, as ``"cpu"``; None: unknown."""
    return _NAMES[number].lower() if 0 <= number < len(_NAMES) else None


def tensor_device(number: Any, index: int) -> Device | None:
    """Return the device of a saved tensor, by Caffe2's number of its type and its index.

    None where tensors cannot be on devices of that type: they can be on the CPU, whose index is
    ignored, and on CUDA devices.
    """
    if not isinstance(number, int):
        return None
    if number == CPU:
        return _CPU
    return Device(DeviceType.CUDA, index) if number == CUDA else None


def on_mkldnn(option: Any) -> bool:
    """Return whether a DeviceOption, or None, names the CPU by MKL-DNN, also called IDEEP."""
    return option is not None and option.device_type in _ON_CPU


def asked_device(number: Any, index: int) -> Device | None:
    """Return the device that a device option asks for: as `tensor_device`; MKLDNN is the CPU."""
    return _CPU if number in _ON_CPU else tensor_device(number, index)


def device_of_option(option: Any) -> Device:
    """Return the device that a DeviceOption specifies.

    Raises EnforceNotMet, also a ValueError: operators do not run on such devices.
    """
    device = asked_device(option.device_type, option.device_id)
    if device is None:
        kind = device_kind(option.device_type)
        raise EnforceValueError(
            f"The device option names the device type {(kind or str(option.device_type)).upper()}; "
            "operators run on CPU and CUDA.",
            "DeviceOption",
            condition="device_type in (CPU, CUDA)",
        )
    return device


def IsGPUDeviceType(device_type: int) -> bool:
    """Return whether Caffe2's number of a device type means CUDA or HIP."""
    return device_type in (CUDA, HIP)


def device_option_equal(
    opt1: Any, opt2: Any, ignore_node_name: bool = True, ignore_random_seed: bool = True
) -> bool:
    """Return whether two DeviceOptions, or None, specify the same device."""
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
    """Return whether two DeviceOptions have the same type and number; absent fields count as 0."""
    return bool(src.device_type == dst.device_type and src.device_id == dst.device_id)
