# SPDX-License-Identifier: Apache-2.0
"""Nets that were written for a GPU, on a machine that has none."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

from bridge.annotation import Any
from bridge.caffe2.base.hardware import NumCudaDevices
from bridge.caffe2.base.names import listed

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
