# SPDX-License-Identifier: Apache-2.0
"""The devices of the inputs and outputs of operators.

Follows caffe2/python/core.py and the device inference of operator schemas, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.base.messages import as_message, caffe2_pb2

# The inputs and outputs that are on the CPU wherever the operator runs; None is all of them.
_ON_CPU: dict[str, tuple[tuple[int, ...] | None, tuple[int, ...] | None]] = {
    "Adam": ((5,), ()),
    "Concat": ((), (1,)),
    "CopyCPUToGPU": (None, ()),
    "CopyFromCPUInput": (None, ()),
    "CopyGPUToCPU": ((), None),
    "EnsureCPUOutput": ((), None),
    "LearningRate": ((0,), ()),
    "RowWiseSparseAdam": ((6,), ()),
    "SparseAdam": ((6,), ()),
    "Split": ((1,), ()),
    "SplitByLengths": ((1,), ()),
    "WeightScale": ((1,), ()),
}


def InferBlobDevices(net: Any) -> dict[str, Any]:
    """Return a dict of the blobs that a net writes, and the DeviceOption of the last writer."""
    message = as_message(net, "NetDef", "InferBlobDevices")
    return {name: operator.device_option for operator in message.op for name in operator.output}


def InferOpBlobDevices(op: Any) -> tuple[list[Any], list[Any]]:
    """Return the list of the DeviceOptions of the inputs, and the list of the outputs'.

    Each is a copy of the operator's, or of the CPU for blobs that are on the CPU wherever the
    operator runs, such as Concat's split info. Raises EnforceNotMet: `op` is not an OperatorDef.
    """
    message = as_message(op, "OperatorDef", "InferOpBlobDevices")
    inputs, outputs = _ON_CPU.get(message.type, ((), ()))
    option = message.device_option
    return _placed(option, len(message.input), inputs), _placed(
        option, len(message.output), outputs
    )


def _placed(option: Any, count: int, on_cpu: tuple[int, ...] | None) -> list[Any]:
    options = []
    for number in range(count):
        copy = caffe2_pb2().DeviceOption()
        if on_cpu is not None and number not in on_cpu:
            copy.CopyFrom(option)
        options.append(copy)
    return options


def InferOpBlobDevicesAsDict(op: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results of `InferOpBlobDevices` as dicts by the names of inputs and outputs."""
    message = as_message(op, "OperatorDef", "InferOpBlobDevicesAsDict")
    inputs, outputs = InferOpBlobDevices(message)
    return dict(zip(message.input, inputs, strict=True)), dict(
        zip(message.output, outputs, strict=True)
    )


def InferOpDeviceAsBlobDevices(op: Any) -> tuple[list[Any], list[Any]]:
    """Return the operator's DeviceOption, once for each input and once for each output."""
    message = as_message(op, "OperatorDef", "InferOpDeviceAsBlobDevices")
    return [message.device_option] * len(message.input), [message.device_option] * len(
        message.output
    )
