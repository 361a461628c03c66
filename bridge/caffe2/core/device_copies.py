# SPDX-License-Identifier: Apache-2.0
"""The devices of the blobs of operators, and the operators that copy blobs between devices.

Follows caffe2/python/core.py and the device inference of operator schemas, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceValueError
from bridge.caffe2.base.device_option import IsGPUDeviceType, device_equal
from bridge.caffe2.base.messages import as_message, caffe2_pb2, copied
from bridge.caffe2.core.cloning import rename
from bridge.caffe2.core.net import Net
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.scope import DeviceScope

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


class RemapEntry:
    """A blob and a device that it was copied to: the key of a table of copies."""

    def __init__(self, blob: str, device: Any) -> None:
        self.blob = blob
        self.device = device

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RemapEntry)
            and self.blob == other.blob
            and bool(self.device == other.device)
        )

    def __hash__(self) -> int:
        return hash(self.blob + str(self.device))


def copy_func_between_devices(src: Any, dst: Any) -> Callable[..., Any] | None:
    """Return ``f(net, input, output)``, which adds a copy between two devices; None if not needed.

    Raises EnforceNotMet, also a ValueError: a device is neither a CPU nor a GPU.
    """
    from_gpu, to_gpu = IsGPUDeviceType(src.device_type), IsGPUDeviceType(dst.device_type)
    if not (from_gpu or src.device_type == 0) or not (to_gpu or dst.device_type == 0):
        raise EnforceValueError(
            f"Non-supported devices: {src} and {dst}", "copy_func_between_devices"
        )
    if from_gpu and to_gpu:
        if src.device_id == dst.device_id:
            return None
        op_type, at = "Copy", dst
    elif from_gpu:
        op_type, at = "CopyGPUToCPU", src
    elif to_gpu:
        op_type, at = "CopyCPUToGPU", dst
    else:
        return None

    def copy(net: Net, *args: Any, **kwargs: Any) -> Any:
        with DeviceScope(at):
            return getattr(net, op_type)(*args, **kwargs)

    return copy


def update_placeholder_op_output(op: Any, blob_to_device: dict[str, Any]) -> None:
    """Append ``_cpu``, in place, to outputs with names of blobs on another device."""
    rename(op.output, {k: f"{k}_cpu" for k, device in blob_to_device.items() if device.device_type})


def InjectCrossDeviceCopies(
    net: Net,
    blob_to_device: dict[str, Any] | None = None,
    blob_remap: dict[RemapEntry, str] | None = None,
    placeHolderOps: Iterable[str] | None = None,
) -> tuple[Net, dict[str, Any]]:
    """Return a copy of a net with operators that copy inputs to the devices that need them.

    The second result is `blob_to_device`: the devices of blobs by name, updated in place. External
    inputs that it lacks are on the device of the net. blob_remap: the existing copies, updated in
    place. placeHolderOps: operator types whose inputs and outputs are on the operator's device.

    Raises EnforceNotMet: an input is not defined in the net (also an AssertionError), or operators
    on different devices write one blob.
    """
    caller = "InjectCrossDeviceCopies"
    places = {} if blob_to_device is None else blob_to_device
    copies = {} if blob_remap is None else blob_remap
    placeholders = frozenset(placeHolderOps or ())
    result = net.Clone(net.Name() + "_cross_device")
    message = result.Proto()
    del message.op[:]
    message.external_input.extend(
        [
            copy
            for name in message.external_input
            for one, copy in copies.items()
            if one.blob == name
        ]
    )
    for operator in net.Proto().op:
        new = copied(operator, "OperatorDef", caller)
        infer = InferOpDeviceAsBlobDevices if operator.type in placeholders else InferOpBlobDevices
        input_devices, output_devices = infer(new)
        moved: dict[str, str] = {}
        for name, device in zip(operator.input, input_devices, strict=True):
            _place_input(net, name, places, caller)
            if not device_equal(places[name], device):
                moved[name] = _copied(result, name, device, places, copies)
        if operator.type in placeholders:
            update_placeholder_op_output(new, places)
        for name, device in zip(new.output, output_devices, strict=True):
            if (
                name in places
                and name not in operator.input
                and not device_equal(places[name], device)
            ):
                raise EnforceNotMet(
                    f"Blob {name!r} is written on different devices, {places[name]} and {device}, "
                    f"last by {operator.type}; use another name for one of the two.",
                    caller,
                )
        rename(new.input, moved)
        rename(new.output, moved)
        places.update(zip(new.output, output_devices, strict=True))
        result.extend_ops([new])
    return result, places


def _place_input(net: Net, name: str, places: dict[str, Any], caller: str) -> None:
    if not net.BlobIsDefined(name):
        raise EnforceAssertionError(
            f"input {name} should be defined in the net.", caller, condition="BlobIsDefined(name)"
        )
    if name not in places:
        if not net.is_external_input(name):
            raise EnforceNotMet(f"No device information found for blob {name}.", caller)
        places[name] = net.Proto().device_option


def _copied(
    net: Net, name: str, device: Any, places: dict[str, Any], copies: dict[RemapEntry, str]
) -> str:
    """Return the name of the blob's copy on `device`, after adding the copy if it is missing."""
    entry = RemapEntry(name, device)
    known = copies.get(entry)
    if known is not None and places.get(known) == device:
        return known
    copy = copy_func_between_devices(places[name], device)
    if copy is None:
        return name
    new_name = f"{name}_gpu_{device.device_id}" if device.device_type else f"{name}_cpu"
    # References, as the current name scope is a prefix of plain names.
    copy(net, BlobReference(name), BlobReference(new_name))
    copies[entry] = new_name
    places[new_name] = device
    return new_name


def InjectDeviceCopiesAmongNets(
    nets: Any, blob_to_device_init: dict[str, Any] | None = None
) -> tuple[list[Net], dict[str, Any]]:
    """Return copies of nets that run in this order, with copies between devices inserted.

    The second result is the devices of all blobs; see `InjectCrossDeviceCopies`. Raises
    EnforceNotMet as that function, or, also an AssertionError, if `nets` is not a list of Nets.
    """
    if not isinstance(nets, list) or not all(isinstance(net, Net) for net in nets):
        raise EnforceAssertionError(
            f"nets {nets} should be a list of nets.", "InjectDeviceCopiesAmongNets"
        )
    places: dict[str, Any] = blob_to_device_init or {}
    copies: dict[RemapEntry, str] = {}
    return [InjectCrossDeviceCopies(net, places, copies)[0] for net in nets], places


def InjectDeviceCopiesAmongNetsWithoutB2D(
    nets: Any, blob_to_device_init: dict[str, Any] | None = None
) -> list[Net]:
    """Return the nets of `InjectDeviceCopiesAmongNets`, without the devices."""
    return InjectDeviceCopiesAmongNets(nets, blob_to_device_init)[0]
