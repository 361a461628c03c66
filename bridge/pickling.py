# SPDX-License-Identifier: Apache-2.0
"""Pickle for both tensor classes: zero-copy by the out-of-band buffers of protocol 5.

Pickles name the functions that rebuild a tensor: a new layout gets new functions beside them.
"""

from __future__ import annotations

import sys

from bridge.c10.device import Device
from bridge.c10.errors import EnforceNotMet
from bridge.c10.raw_parts import byte_view, from_buffer, from_items, items_of, sized
from bridge.c10.tensor_impl import UndefinedTensorImpl, unchanging
from bridge.exchange.device_memory import to_device
from bridge.exchange.torch_export import export_torch
from bridge.exchange.torch_import import import_new_torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

# Returns the form of a tensor in shared memory in a message of multiprocessing, None for another
# tensor; bridge.shared sets it.
in_message: Callable[[Any], tuple[Any, ...] | None] | None = None


def reduced(tensor: Any, protocol: int) -> tuple[Any, ...]:
    """Return the result of a tensor's ``__reduce_ex__``.

    For ``torch.save`` it is a torch tensor, so that the file has a storage once for all that share
    it. Otherwise host memory is one buffer, out of band if the pickler supports it: shared then,
    and read-only if the receiver's buffer is; memory of other devices goes through a host copy and
    back to the same device; unpickled tensors are row-major. Attributes of subclasses are included.
    """
    attributes = getattr(tensor, "__dict__", None)
    parts = in_message(tensor) if in_message is not None and _is_message() else None
    if parts is None:
        parts = _parts(tensor, protocol)
    return (*parts, attributes) if attributes else parts


def _parts(tensor: Any, protocol: int) -> tuple[Any, ...]:
    cls = type(tensor)
    impl = unchanging(tensor.unsafeGetTensorImpl())
    if not impl.defined():
        return _undefined, (cls,)
    device = impl.device()
    sizes = tuple(impl.sizes())
    dtype = impl.dtype()
    if not dtype or (impl.numel() and not impl.get_storage().data_ptr()):
        return _sized, (cls, sizes, dtype, str(device))
    if not dtype.is_pod:
        return _items, (cls, sizes, dtype, items_of(impl))
    if protocol <= 2 and _is_torch_save():
        theirs = _of_torch(impl)
        if theirs is not None:
            return _taken, (cls, theirs)
    if str(device) not in ("cpu", "cuda_host"):
        # (not bytes: torch.load takes no pickle of empty ones under its safe default)
        host = to_device(impl, Device("cpu"))
        return _moved, (cls, bytearray(byte_view(host)), sizes, dtype, str(device))
    buffer = byte_view(impl)
    if protocol >= 5:
        import pickle

        return _buffer, (cls, pickle.PickleBuffer(buffer), sizes, dtype)
    return _buffer, (cls, bytearray(buffer), sizes, dtype)


def _is_message() -> bool:
    """Return whether the pickler belongs to multiprocessing, whose messages are read at once."""
    frame: FrameType = sys._getframe(2)  # (picklers, and methods that are compiled, have none)
    return frame.f_globals.get("__name__") == "multiprocessing.reduction"


def _is_torch_save() -> bool:
    """Return whether the pickler belongs to ``torch.save``, which writes storages once."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == "torch.serialization":
            return True
        frame = frame.f_back
    return False


def _of_torch(impl: Any) -> Any:
    """Return a torch.Tensor of the memory of `impl`; None if torch cannot hold it."""
    try:
        return export_torch(impl, copy=False, writable=True)
    except BufferError:
        return None


def _undefined(cls: Any) -> Any:
    return cls._of(UndefinedTensorImpl.singleton())


def _sized(cls: Any, sizes: Any, dtype: Any, device: str) -> Any:
    return cls._of(sized(sizes, dtype, Device(device)))


def _items(cls: Any, sizes: Any, dtype: Any, items: list[Any]) -> Any:
    return cls._of(from_items(sizes, dtype, items))


def _buffer(cls: Any, buffer: Any, sizes: Any, dtype: Any) -> Any:
    return cls._of(from_buffer(buffer, sizes, dtype))


def _taken(cls: Any, tensor: Any) -> Any:
    return cls._of(import_new_torch(tensor))


def _moved(cls: Any, buffer: Any, sizes: Any, dtype: Any, device: str) -> Any:
    import pickle

    try:
        return cls._of(to_device(from_buffer(buffer, sizes, dtype), Device(device)))
    except EnforceNotMet as error:
        raise pickle.UnpicklingError(
            f"The tensor was on {device}, which is not available here: {error}"
        ) from error


# The functions above that pickles name.
REBUILDERS = (_undefined, _sized, _items, _buffer, _moved, _taken)
