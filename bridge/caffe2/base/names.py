# SPDX-License-Identifier: Apache-2.0
"""Names of blobs and workspaces."""

from __future__ import annotations

from bridge.c10.errors import EnforceAssertionError, EnforceTypeError
from bridge.caffe2.base.errors import wrap_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["InvalidNameError", "name_of", "new_name"]


class InvalidNameError(EnforceTypeError, EnforceAssertionError):
    """Not a valid blob name: an AssertionError in some of Caffe2's functions, else a TypeError."""


def name_of(name: Any, caller: str) -> str:
    """Return a name as plain `str`; `bytes` are decoded as UTF-8, a BlobReference is its name.

    Raises EnforceNotMet: it is of another type (also a TypeError and AssertionError), or not valid
    UTF-8 (also a ValueError).
    """
    try:
        if isinstance(name, bytes):
            return name.decode()
        if isinstance(name, str) or type(name).__name__ == "BlobReference":
            text = str(name)
            text.encode()
            return text
    except UnicodeError as cause:
        raise wrap_error(f"{name!r} is not a valid name: names are UTF-8", caller, cause) from cause
    raise InvalidNameError(
        f"A name is a str, bytes or a BlobReference, not {type(name).__name__}.", caller
    )


def new_name(basename: str, used: set[str]) -> str:
    """Return `basename`, with a number appended if it is in `used`; the name is added to `used`."""
    name, number = basename, 1
    while name in used:
        name = f"{basename}_{number}"
        number += 1
    used.add(name)
    return name
