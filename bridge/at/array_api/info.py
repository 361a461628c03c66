# SPDX-License-Identifier: Apache-2.0
"""What the namespace can do: ``__array_namespace_info__`` of the array API standard."""

from __future__ import annotations

import sys
from typing import Any

from bridge.at.array_api.dtypes import KINDS, NAMES, require_kind
from bridge.c10.device import Device
from bridge.c10.type_meta import TypeMeta, as_type

__all__ = ["ArrayNamespaceInfo"]

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
            require_kind(one)
        wanted = NAMES if kinds is None else [name for one in kinds for name in KINDS[one]]
        return {name: as_type(name) for name in NAMES if name in wanted and name not in _RARE}

    def devices(self) -> list[Device]:
        """Return the devices: the CPU, and torch's CUDA devices where torch is imported."""
        torch = sys.modules.get("torch")
        count = 0 if torch is None else torch.cuda.device_count()
        return [Device("cpu"), *(Device(f"cuda:{index}") for index in range(count))]
