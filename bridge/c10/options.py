# SPDX-License-Identifier: Apache-2.0
"""TensorOptions: the element type, device and kind of memory that a factory creates."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.device import Device, as_device
from bridge.c10.errors import EnforceTypeError, shown
from bridge.c10.type_meta import TypeMeta, as_type


class TensorOptions:
    """Element type, device and whether host memory is page-locked; immutable.

    Parameters
    ----------
    dtype: anything that names an element type, or None: not specified.
    device: anything that names a device, or None: not specified.
    pinned_memory: page-locked host memory, for copies to CUDA devices.

    Raises
    ------
    EnforceNotMet, also a TypeError or ValueError: they do not name a type or a device.

    Follows c10::TensorOptions, c10/core/TensorOptions.h, PyTorch 1.8.1.

    >>> from bridge import c10
    >>> c10.dtype("float64").device("cpu")
    TensorOptions(dtype=float64, device=cpu, pinned_memory=False)
    """

    __slots__ = ("_device", "_dtype", "_pinned_memory")

    _dtype: TypeMeta | None
    _device: Device | None
    _pinned_memory: bool

    def __new__(
        cls, dtype: Any = None, device: Any = None, pinned_memory: bool = False
    ) -> TensorOptions:
        """Create options of these."""
        if not isinstance(pinned_memory, bool):
            raise EnforceTypeError(
                f"pinned_memory is True or False, not {pinned_memory!r}.", "TensorOptions"
            )
        self = super().__new__(cls)
        set_field = object.__setattr__
        set_field(self, "_dtype", None if dtype is None else as_type(dtype))
        set_field(self, "_device", None if device is None else as_device(device))
        set_field(self, "_pinned_memory", pinned_memory)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"TensorOptions are immutable; options.{name.lstrip('_')}(...) returns new ones."
        )

    def __delattr__(self, name: str) -> None:
        raise AttributeError("TensorOptions are immutable.")

    def dtype(self, T: Any = None) -> Any:
        """Return new options with element type `T`; without argument return the type, or None."""
        if T is None:
            return self._dtype
        return TensorOptions(T, self._device, self._pinned_memory)

    def device(self, D: Any = None) -> Any:
        """Return new options with device `D`; without argument return the device, or None."""
        if D is None:
            return self._device
        return TensorOptions(self._dtype, D, self._pinned_memory)

    def pinned_memory(self, value: bool | None = None) -> Any:
        """Return new options with page-locked memory or not; without argument, return which."""
        if value is None:
            return self._pinned_memory
        return TensorOptions(self._dtype, self._device, value)

    def has_dtype(self) -> bool:
        """Return whether an element type is specified."""
        return self._dtype is not None

    def has_device(self) -> bool:
        """Return whether a device is specified."""
        return self._device is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorOptions):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[TypeMeta | None, Device | None, bool]:
        return self._dtype, self._device, self._pinned_memory

    def __repr__(self) -> str:
        return (
            f"TensorOptions(dtype={self._dtype}, device={self._device}, "
            f"pinned_memory={self._pinned_memory})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorOptions, self._key()


def as_options(options: Any = None, dtype: Any = None, device: Any = None) -> TensorOptions:
    """Return the options that the arguments of a factory specify.

    `options` is TensorOptions, or names a type or a device. Raises EnforceNotMet, also a TypeError:
    it is none of these, or specifies the same as a keyword.
    """
    if options is None:
        return TensorOptions(dtype, device)
    if not isinstance(options, TensorOptions):
        options = _bare(options)
    if dtype is not None:
        if options.has_dtype():
            raise EnforceTypeError("The element type is given twice.", "TensorOptions")
        options = options.dtype(dtype)
    if device is not None:
        if options.has_device():
            raise EnforceTypeError("The device is given twice.", "TensorOptions")
        options = options.device(device)
    return options  # type: ignore[no-any-return]


def _bare(spec: Any) -> TensorOptions:
    try:
        return TensorOptions(dtype=spec)
    except (TypeError, ValueError):
        pass  # not an element type, but perhaps a device
    try:
        return TensorOptions(device=spec)
    except (TypeError, ValueError) as error:
        raise EnforceTypeError(
            f"{shown(spec)} names neither an element type nor a device. Give c10.TensorOptions, "
            "a type such as 'float32', a device such as 'cuda:0', or dtype= and device=.",
            "TensorOptions",
        ) from error
