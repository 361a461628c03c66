# SPDX-License-Identifier: Apache-2.0
"""``convert(x, like=y)``: to the library and the device of a tensor."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.at.tensor import Tensor
from bridge.c10.device import Device
from bridge.c10.reports import observe_call, outermost, report_copy
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.registry import exporting_adapter
from bridge.exchange.torch_api import is_torch_tensor
from bridge.single import convert_one
from bridge.trees.convert import convert_tree
from bridge.trees.nodes import is_tensor, is_tree
from bridge.wrapper import Wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.exchange.registry import Adapter


def convert_like(x: Any, like: Any, copy: bool | None, writable: bool, readonly: bool) -> Any:
    """Return `x`, a tensor or a tree, as the library of `like`, on its device."""
    name, adapter = _library_of(like)
    if is_torch_tensor(like):
        export = _to_torch_device(like.device, writable, readonly)
    else:
        export = _to_device(name, adapter, like)
    if is_tree(x):
        return convert_tree(x, name, "convert", name, copy, writable, readonly, export)
    if outermost():
        return observe_call("convert", x, name, export, x, copy)
    return export(x, copy)


def _library_of(like: Any) -> tuple[str, Adapter | None]:
    """Return the name of the library of a tensor, and its adapter if it is a registered one.

    Raises TypeError: `like` is not a tensor of a library that the bridge converts to.
    """
    if isinstance(like, Wrapper):
        return ("at" if isinstance(like, Tensor) else "caffe2"), None
    if is_torch_tensor(like):
        return "torch", None
    package = type(like).__module__.partition(".")[0]
    if package == "numpy" or _is_array(like):
        return "numpy", None
    adapter = exporting_adapter(type(like))
    if adapter is not None and is_tensor(like):
        return adapter.name, adapter
    what = "a tree" if is_tree(like) else "not a tensor of a library that the bridge converts to"
    raise TypeError(
        f"like= is one tensor, whose library and device are meant; a {type(like).__qualname__} is "
        f"{what}. Give the library's name instead, as in convert(x, 'torch')."
    )


def _is_array(like: Any) -> bool:
    import sys

    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(like, numpy.ndarray)


def _to_torch_device(
    device: Any, writable: bool, readonly: bool
) -> Callable[[Any, bool | None], Any]:
    if device.type == "meta":
        raise BufferError(
            "like= is a meta tensor, which has no memory: values would be lost. Give a tensor of a "
            "device, or the name 'torch'."
        )

    def export(x: Any, copy: bool | None) -> Any:
        tensor = convert_one(x, "torch", None if copy is True else copy, writable, readonly)
        if tensor.device != device:
            _require_copy(copy, tensor.device, device)
            report_copy(tensor.nbytes, f"it is on {tensor.device} and goes to {device}")
            return tensor.to(device)
        return convert_one(x, "torch", True, writable, readonly) if copy is True else tensor

    return export


def _to_device(name: str, adapter: Adapter | None, like: Any) -> Callable[[Any, bool | None], Any]:
    device = Device("cpu") if name == "numpy" else _device_of(like)
    place = None if adapter is None else adapter.placer

    def export(x: Any, copy: bool | None) -> Any:
        converted = _export_to(x, name, device, copy)
        return converted if place is None else place(converted, like, copy)

    return export


def _export_to(x: Any, name: str, device: Device, copy: bool | None) -> Any:
    if type(x).__name__ == "PyCapsule":  # which is used up by the first look
        x = Tensor._wrap(import_tensor(x))
    here = _device_of(x)
    if here == device:
        return convert_one(x, name, copy)
    _require_copy(copy, here, device)
    return convert_one(Tensor._wrap(import_tensor(x, device)), name, None)


def _device_of(x: Any) -> Device:
    """Return the device of the memory of a tensor, which may require grad."""
    if isinstance(x, Wrapper):
        device: Device = x.unsafeGetTensorImpl().device()
        return device
    if is_torch_tensor(x):
        return Device(x.device)
    if _is_array(x):
        return Device("cpu")
    try:
        return import_tensor(x).device()
    except BufferError:
        detach = getattr(x, "detach", None)
        if detach is None:
            raise
        return import_tensor(detach()).device()


def _require_copy(copy: bool | None, here: Any, there: Any) -> None:
    if copy is False:
        raise BufferError(
            f"The tensor is on {here}; moving it to {there} needs a copy. Allow it with copy=None."
        )
