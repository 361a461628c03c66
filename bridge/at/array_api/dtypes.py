# SPDX-License-Identifier: Apache-2.0
"""Element types of the array API standard: names, promotion, limits, conversion, which are here."""

from __future__ import annotations

import functools
import sys
from collections import namedtuple
from typing import Any

import numpy as np

from bridge.at.tensor import Tensor
from bridge.c10.device import Device
from bridge.c10.errors import EnforceTypeError
from bridge.c10.type_meta import TypeMeta, as_type

__all__ = [
    "FUNCTIONS", "KINDS", "NAMES", "SCALARS", "astype", "can_cast", "finfo", "iinfo", "isdtype",
    "promoted", "result_type",
]  # fmt: skip

# Those of the standard.
FUNCTIONS = ("astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type")


SCALARS = (bool, int, float, complex)
_SIGNED = ("int8", "int16", "int32", "int64")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
_REAL = ("float32", "float64")
_COMPLEX = ("complex64", "complex128")
# Within each, types are promoted as NumPy does, to another of them.
_PROMOTED = (("bool",), (*_SIGNED, *_UNSIGNED), (*_REAL, *_COMPLEX))
NAMES = ("bool", *_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX)

# The kinds of `isdtype`.
KINDS = {
    "bool": ("bool",),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": (*_SIGNED, *_UNSIGNED),
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": (*_SIGNED, *_UNSIGNED, *_REAL, *_COMPLEX),
}

finfo_object = namedtuple("finfo_object", "bits eps max min smallest_normal dtype")
iinfo_object = namedtuple("iinfo_object", "bits max min dtype")


def promoted(a: TypeMeta, b: TypeMeta) -> TypeMeta | None:
    """Return the type of the standard's promotion table; None where it has no row."""
    for kind in _PROMOTED:
        if a.name in kind and b.name in kind:
            name = np.promote_types(a.numpy, b.numpy).name
            return as_type(name) if name in kind else None  # uint64 and int64 have none
    return a if a is b else None


def _type_of(x: Any) -> TypeMeta:
    if isinstance(x, Tensor):
        return x.dtype()
    # the NumPy scalar of an array; a NumPy type has an attribute of this name, too
    return as_type(x.dtype if hasattr(x, "__array__") and not isinstance(x, type) else x)


def result_type(*arrays_and_dtypes: Any) -> TypeMeta:
    """Return the type that the arguments are promoted to: arrays, types and Python scalars.

    Raises ValueError: there is neither an array nor a type. TypeError: the types have no common
    one, in the standard or in torch.
    """
    scalars = [one for one in arrays_and_dtypes if isinstance(one, SCALARS)]
    types = [_type_of(one) for one in arrays_and_dtypes if not isinstance(one, SCALARS)]
    if not types:
        raise ValueError("result_type takes at least one array or type.")
    found = functools.reduce(_common, types)
    for scalar in scalars:
        found = _with_scalar(found, scalar)
    return found


def _common(a: TypeMeta, b: TypeMeta) -> TypeMeta:
    found = promoted(a, b)
    if found is not None:
        return found
    import torch

    if a.torch is None or b.torch is None:
        raise EnforceTypeError(f"{a} and {b} have no common type.", "result_type")
    try:
        return as_type(torch.promote_types(a.torch, b.torch))
    except RuntimeError as error:
        raise EnforceTypeError(
            f"{a} and {b} have no common type: {error}", "result_type"
        ) from error


def _with_scalar(meta: TypeMeta, scalar: Any) -> TypeMeta:
    kind = type(scalar)
    if issubclass(kind, complex) and not meta.is_complex:
        return as_type("complex128" if meta.name == "float64" else "complex64")
    if issubclass(kind, float) and not (meta.is_floating_point or meta.is_complex):
        return as_type("float32")
    if issubclass(kind, int) and kind is not bool and meta.name == "bool":
        return as_type("int64")
    return meta


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether the type, or that of the array, is promoted to `to` beside it."""
    source, target = _type_of(from_), as_type(to)
    found = promoted(source, target)
    if found is not None:
        return found is target
    import torch

    if source.torch is None or target.torch is None:
        return source is target
    return torch.can_cast(source.torch, target.torch)


def _require_kind(kind: str) -> None:
    """Raise ValueError if there is no such kind of type."""
    if kind not in KINDS:
        raise ValueError(
            f"{kind!r} is not a kind of type; those are {', '.join(map(repr, KINDS))}."
        )


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a type is of a kind: a type, one of the standard's names, or a tuple of them.

    Raises ValueError: no such kind. TypeError: a tuple inside a tuple.
    """
    if isinstance(kind, tuple):
        if any(isinstance(one, tuple) for one in kind):
            raise TypeError(f"Kinds are types and strings, not tuples: {kind!r}.")
        return any(isdtype(dtype, one) for one in kind)
    meta = as_type(dtype)
    if not isinstance(kind, str):
        return meta is as_type(kind)
    _require_kind(kind)
    if kind == "real floating":
        return meta.is_floating_point
    return meta.name in KINDS[kind] or (kind == "numeric" and meta.is_floating_point)


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Return the array with another element type; always a copy, unless ``copy=False``."""
    return x.to(dtype=dtype, device=device, copy=copy)


def finfo(type: Any, /) -> finfo_object:
    """Return the limits of a floating-point type, or of the parts of a complex one.

    Raises TypeError: it is neither.
    """
    import torch

    meta = _type_of(type).to_real()
    if not meta.is_floating_point or meta.torch is None:
        raise EnforceTypeError(f"finfo takes a floating-point type, not {meta}.", "finfo")
    found = torch.finfo(meta.torch)
    return finfo_object(found.bits, found.eps, found.max, found.min, found.smallest_normal, meta)


def iinfo(type: Any, /) -> iinfo_object:
    """Return the limits of a type of integers. Raises TypeError: it is none."""
    meta = _type_of(type)
    if meta.name not in KINDS["integral"]:
        raise EnforceTypeError(f"iinfo takes a type of integers, not {meta}.", "iinfo")
    bits = 8 * meta.itemsize
    if meta.is_signed:
        return iinfo_object(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), meta)
    return iinfo_object(bits, 2**bits - 1, 0, meta)


# torch has them, but few of its functions do.
_RARE = ("uint16", "uint32", "uint64")


class ArrayNamespaceInfo:
    """Capabilities, devices and element types of the namespace of at.Tensor.

    >>> from bridge import at
    >>> info = at.zeros(1).__array_namespace__().__array_namespace_info__()
    >>> info.default_device(), info.default_dtypes()["real floating"], info.capabilities()
    (Device('cpu'), TypeMeta('float32'), {'boolean indexing': True, 'data-dependent shapes': True, \
'max dimensions': 64})
    """

    def capabilities(self) -> dict[str, Any]:
        """Return what is optional in the standard and whether it is here."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device of new arrays."""
        return Device("cpu")

    def default_dtypes(self, *, device: Any = None) -> dict[str, TypeMeta]:
        """Return the types of new arrays, by kind."""
        return {
            "real floating": as_type("float32"),
            "complex floating": as_type("complex64"),
            "integral": as_type("int64"),
            "indexing": as_type("int64"),
        }

    def dtypes(
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, TypeMeta]:
        """Return the types by name: all, or those of a kind of `isdtype` or several.

        Without uint16, uint32 and uint64, which most functions of torch do not take.

        Raises ValueError: no such kind.
        """
        kinds = (kind,) if isinstance(kind, str) else kind
        for one in kinds or ():
            _require_kind(one)
        wanted = NAMES if kinds is None else [name for one in kinds for name in KINDS[one]]
        return {name: as_type(name) for name in NAMES if name in wanted and name not in _RARE}

    def devices(self) -> list[Device]:
        """Return the devices: the CPU, and torch's CUDA devices where torch is imported."""
        torch = sys.modules.get("torch")
        count = 0 if torch is None else torch.cuda.device_count()
        return [Device("cpu"), *(Device(f"cuda:{index}") for index in range(count))]
