# SPDX-License-Identifier: Apache-2.0
"""Names of a module that are imported from elsewhere when they are first asked for."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["lazily"]


def lazily(
    module: str, places: dict[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a module that has names from other modules.

    places: for each module that has them, by its full name, the names, a space between.
    A name that equals the last part of its module's is the module, and so is ``C``, as Caffe2 calls
    its extension module.
    """
    where = {name: place for place, names in places.items() for name in names.split()}

    def get(name: str) -> Any:
        place = where.get(name)
        if place is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        __import__(place)
        found = sys.modules[place]
        value = found if name == "C" or place.endswith(f".{name}") else getattr(found, name)
        setattr(sys.modules[module], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *where})

    return get, names
