# SPDX-License-Identifier: Apache-2.0
"""Type aliases and protocols of the arguments that the functions of the bridge take.

>>> from bridge.typing import DeviceLike, TypeLike
>>> def ones(sizes: tuple[int, ...], T: TypeLike = "float32", D: DeviceLike = "cpu") -> None: ...

An alias covers the facts that a type checker can know; an invalid device or element type is
detected when it is used. Importing this module loads no framework.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from bridge.lazy import listed as _listed

if TYPE_CHECKING:
    from enum import IntEnum
    from types import EllipsisType
    from typing import SupportsIndex

    import numpy as np
    import torch
    from typing_extensions import Buffer, CapsuleType

__all__ = [
    "ArrayLike", "BufferLike", "Deleter", "DeviceLike", "Dims", "IndexLike", "Operand",
    "OptionsLike", "SupportsArrayInterface", "SupportsArrow", "SupportsArrowStream",
    "SupportsCudaArrayInterface", "SupportsDLPack", "SupportsDevice", "SupportsElementType",
    "SupportsMemory", "SupportsOptions", "TensorLike", "TypeLike",
]  # fmt: skip
__dir__ = _listed(__name__)


class SupportsDLPack(Protocol):
    """A producer of DLPack: a tensor or array of any framework, and both wrappers."""

    def __dlpack__(self, *, stream: Any = ...) -> CapsuleType:
        """Return a capsule of the memory."""
        ...

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's (device type, index) of the memory."""
        ...


class SupportsArrayInterface(Protocol):
    """Host memory that NumPy's array interface describes, such as NumPy's scalars."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """The description, version 3."""
        ...


class SupportsCudaArrayInterface(Protocol):
    """CUDA memory that the CUDA Array Interface describes."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The description, version 2 or 3."""
        ...


class SupportsArrow(Protocol):
    """Host memory that Arrow's C interface describes: an array of any library of Arrow."""

    def __arrow_c_array__(self, requested_schema: Any = ...) -> tuple[Any, Any]:
        """Return capsules of the schema and of the memory."""
        ...


class SupportsArrowStream(Protocol):
    """Chunks of Arrow's memory, such as a column or a table."""

    def __arrow_c_stream__(self, requested_schema: Any = ...) -> Any:
        """Return a capsule of the stream."""
        ...


class SupportsDevice(Protocol):
    """A ``c10.Device`` or ``torch.device``."""

    @property
    def type(self) -> Any:
        """The kind of device."""
        ...

    @property
    def index(self) -> Any:
        """The number of the device among the devices of its kind."""
        ...


class SupportsElementType(Protocol):
    """A ``c10.TypeMeta``."""

    @property
    def is_pod(self) -> bool:
        """Whether elements are plain memory."""
        ...

    def Match(self, T: Any) -> bool:
        """Return whether `T` names the same type."""
        ...


class SupportsOptions(Protocol):
    """A ``c10.TensorOptions``."""

    def has_dtype(self) -> bool:
        """Return whether an element type is specified."""
        ...

    def has_device(self) -> bool:
        """Return whether a device is specified."""
        ...


# A device: "cpu", "cuda:1", an object, a c10.DeviceType, or DLPack's (type, index).
DeviceLike: TypeAlias = "str | SupportsDevice | IntEnum | torch.device | tuple[int, int]"

# An element type: a name, a Python, NumPy or registered class, a dtype, a c10.TypeMeta.
TypeLike: TypeAlias = "str | type[Any] | SupportsElementType | np.dtype[Any] | torch.dtype"

# The options of a factory besides the sizes: TensorOptions, or a bare type or device.
OptionsLike: TypeAlias = "SupportsOptions | TypeLike | DeviceLike"

# Sizes or strides, in elements; c10.ArrayRef is one.
Dims: TypeAlias = "Sequence[int]"

# An object with Python's buffer protocol; NumPy declares its arrays as such from Python 3.12 on.
BufferLike: TypeAlias = "Buffer | np.ndarray[Any, Any]"

# An object with one of the other protocols by which memory is handed out.
SupportsMemory: TypeAlias = (
    "SupportsArrayInterface | SupportsCudaArrayInterface | SupportsArrow | SupportsArrowStream"
)

# The arguments of `bridge.from_dlpack`: anything that has a tensor's memory. An object of a library
# that has no such protocol, and that was registered by `bridge.register`, needs a `typing.cast`.
TensorLike: TypeAlias = "SupportsDLPack | CapsuleType | BufferLike | SupportsMemory"

# The arguments of `bridge.asarray`: the same, and numbers, strings and nested lists.
ArrayLike: TypeAlias = "TensorLike | complex | str | Sequence[Any]"

# The other side of an operator of at.Tensor.
Operand: TypeAlias = "complex | SupportsDLPack | SupportsArrayInterface"

# The index between the brackets of an at.Tensor.
IndexLike: TypeAlias = (
    "SupportsIndex | slice[Any, Any, Any] | EllipsisType | Sequence[Any] | SupportsDLPack | None"
)

# Called once with the address of external memory, when it is no longer used.
Deleter: TypeAlias = Callable[[int], object]
