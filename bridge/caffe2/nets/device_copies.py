# SPDX-License-Identifier: Apache-2.0
"""Nets that run on several devices: operators that copy blobs to where they are needed.

Follows InjectCrossDeviceCopies and its kin, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceValueError
from bridge.caffe2.base.device_option import IsGPUDeviceType, device_equal
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.scopes import DeviceScope
from bridge.caffe2.nets.blob_devices import InferOpBlobDevices, InferOpDeviceAsBlobDevices
from bridge.caffe2.nets.net import Net

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "InjectCrossDeviceCopies",
    "InjectDeviceCopiesAmongNets",
    "InjectDeviceCopiesAmongNetsWithoutB2D",
    "RemapEntry",
    "copy_func_between_devices",
    "update_placeholder_op_output",
]


class RemapEntry:
    """A blob and a device that it was copied to: what copies are remembered by."""

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
    """Return ``f(net, input, output)``, which adds a copy between devices; None if not needed.

    Raises EnforceNotMet, also a ValueError: one is neither a CPU nor a GPU.
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
    """Rename the outputs that the blobs of the same name elsewhere are not: they are on the CPU."""
    renamed = [
        f"{name}_cpu" if name in blob_to_device and blob_to_device[name].device_type else name
        for name in op.output
    ]
    del op.output[:]
    op.output.extend(renamed)


def InjectCrossDeviceCopies(
    net: Net,
    blob_to_device: dict[str, Any] | None = None,
    blob_remap: dict[RemapEntry, str] | None = None,
    placeHolderOps: Iterable[str] | None = None,
) -> tuple[Net, dict[str, Any]]:
    """Copy a net, with operators that copy inputs to the devices where they are needed.

    blob_to_device: where blobs are, brought up to date; external inputs that it lacks are on the
    net's own device. blob_remap: the copies that there are already, brought up to date as well.
    placeHolderOps: types whose inputs and outputs are where the operator is. Gives the net and
    `blob_to_device`.

    Raises EnforceNotMet: an input that is not the net's (also an AssertionError), or a blob that
    operators on different devices make.
    """
    caller = "InjectCrossDeviceCopies"
    places = {} if blob_to_device is None else blob_to_device
    copies = {} if blob_remap is None else blob_remap
    placeholders = frozenset(placeHolderOps or ())
    made = net.Clone(net.Name() + "_cross_device")
    message = made.Proto()
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
        new = caffe2_pb2().OperatorDef()
        new.CopyFrom(operator)
        infer = InferOpDeviceAsBlobDevices if operator.type in placeholders else InferOpBlobDevices
        input_devices, output_devices = infer(new)
        moved: dict[str, str] = {}
        for name, device in zip(operator.input, input_devices, strict=True):
            _place_input(net, name, places, caller)
            if not device_equal(places[name], device):
                moved[name] = _copied(made, name, device, places, copies)
        if operator.type in placeholders:
            update_placeholder_op_output(new, places)
        for name, device in zip(new.output, output_devices, strict=True):
            if (
                name in places
                and name not in operator.input
                and not device_equal(places[name], device)
            ):
                raise EnforceNotMet(
                    f"Blob {name!r} is made on different devices, {places[name]} and {device}, "
                    f"last by {operator.type}; give one of the two another name.",
                    caller,
                )
        for names in (new.input, new.output):
            renamed = [moved.get(name, name) for name in names]
            del names[:]
            names.extend(renamed)
        places.update(zip(new.output, output_devices, strict=True))
        made.extend_ops([new])
    return made, places


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
    """Return the name of the blob on `device`, after adding what copies it there if need be."""
    entry = RemapEntry(name, device)
    known = copies.get(entry)
    if known is not None and places.get(known) == device:
        return known
    copy = copy_func_between_devices(places[name], device)
    if copy is None:
        return name
    new_name = f"{name}_gpu_{device.device_id}" if device.device_type else f"{name}_cpu"
    # A plain name would be put into the current name scope.
    copy(net, BlobReference(name), BlobReference(new_name))
    copies[entry] = new_name
    places[new_name] = device
    return new_name


def InjectDeviceCopiesAmongNets(
    nets: Any, blob_to_device_init: dict[str, Any] | None = None
) -> tuple[list[Net], dict[str, Any]]:
    """Do as `InjectCrossDeviceCopies` for nets that run in this order, each after the others.

    Raises EnforceNotMet as that, and, also an AssertionError, for what is no list of nets.
    """
    if not isinstance(nets, list) or not all(isinstance(net, Net) for net in nets):
        raise EnforceAssertionError(
            f"nets {nets} should be a list of nets.", "InjectDeviceCopiesAmongNets"
        )
    places: dict[str, Any] = blob_to_device_init or {}
    copies: dict[RemapEntry, str] = {}
    made = [InjectCrossDeviceCopies(net, places, copies)[0] for net in nets]
    return made, places


def InjectDeviceCopiesAmongNetsWithoutB2D(
    nets: Any, blob_to_device_init: dict[str, Any] | None = None
) -> list[Net]:
    """Do as `InjectDeviceCopiesAmongNets`, and return the nets alone."""
    return InjectDeviceCopiesAmongNets(nets, blob_to_device_init)[0]
