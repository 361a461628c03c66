# SPDX-License-Identifier: Apache-2.0
"""Pickle for both wrappers: protocol 5 out-of-band buffers, so that no copy is made."""

from __future__ import annotations

from bridge.c10.device import Device
from bridge.c10.errors import EnforceNotMet
from bridge.c10.raw_parts import byte_view, from_buffer, from_items, items_of, sized
from bridge.c10.tensor_impl import UndefinedTensorImpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["reduced"]


def reduced(tensor: Any, protocol: int) -> tuple[Any, ...]:
    """What ``__reduce_ex__`` of a wrapper gives.

    Host memory goes as one buffer, out of band where the pickler takes those:
    shared, read-only where the receiver's buffer is. Other devices go through a
    host copy and back to the same device. Row-major afterwards. The attributes of
    an object of a subclass go along.
    """
    attributes = getattr(tensor, "__dict__", None)
    parts = _parts(tensor, protocol)
    return (*parts, attributes) if attributes else parts


def _parts(tensor: Any, protocol: int) -> tuple[Any, ...]:
    cls = type(tensor)
    impl = tensor.unsafeGetTensorImpl()
    if not impl.defined():
        return _undefined, (cls,)
    device = impl.device()
    sizes = tuple(impl.sizes())
    dtype = impl.dtype()
    if not dtype or (impl.numel() and not impl.get_storage().data_ptr()):
        return _sized, (cls, sizes, dtype, str(device))
    if not dtype.is_pod:
        return _items, (cls, sizes, dtype, items_of(impl))
    if str(device) not in ("cpu", "cuda_host"):
        return _moved, (cls, bytes(byte_view(_on_host(impl))), sizes, dtype, str(device))
    buffer = byte_view(impl)
    if protocol >= 5:
        import pickle

        return _buffer, (cls, pickle.PickleBuffer(buffer), sizes, dtype)
    return _buffer, (cls, bytearray(buffer), sizes, dtype)


def _on_host(impl: Any) -> Any:
    from bridge.exchange.transfer import to_device

    return to_device(impl, Device("cpu"))


def _wrapped(cls: Any, impl: Any) -> Any:
    from bridge.wrapper import of_class  # which imports this module

    return of_class(cls, impl)


def _undefined(cls: Any) -> Any:
    return _wrapped(cls, UndefinedTensorImpl.singleton())


def _sized(cls: Any, sizes: Any, dtype: Any, device: str) -> Any:
    return _wrapped(cls, sized(sizes, dtype, Device(device)))


def _items(cls: Any, sizes: Any, dtype: Any, items: list[Any]) -> Any:
    return _wrapped(cls, from_items(sizes, dtype, items))


def _buffer(cls: Any, buffer: Any, sizes: Any, dtype: Any) -> Any:
    return _wrapped(cls, from_buffer(buffer, sizes, dtype))


def _moved(cls: Any, buffer: Any, sizes: Any, dtype: Any, device: str) -> Any:
    import pickle

    from bridge.exchange.transfer import to_device

    try:
        return _wrapped(cls, to_device(from_buffer(buffer, sizes, dtype), Device(device)))
    except EnforceNotMet as error:
        raise pickle.UnpicklingError(
            f"The tensor was on {device}, which is not to be had here: {error}"
        ) from error
