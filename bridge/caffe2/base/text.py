# SPDX-License-Identifier: Apache-2.0
"""Shortening values for error messages."""

from __future__ import annotations

import itertools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["listed", "shortened", "shown_sizes"]

_NAMES = 5
_SIZES = 8
_CHARACTERS = 60


def listed(names: Iterable[str]) -> str:
    """Return the first few names, quoted, then "..." if there are more; "none" if there are none.

    >>> from bridge.caffe2.base.text import listed
    >>> listed("abc"), listed("abcdefgh"), listed("")
    ("'a', 'b', 'c'", "'a', 'b', 'c', 'd', 'e', ...", 'none')
    """
    try:
        first = list(itertools.islice(names, _NAMES + 1))
    except RuntimeError:  # a dict to which another thread is adding
        first = list(names)
    shown = ", ".join(map(repr, first[:_NAMES]))
    return f"{shown}, ..." if len(first) > _NAMES else shown or "none"


def shown_sizes(sizes: Sequence[int]) -> str:
    """Return sizes as text, the first few of many dimensions."""
    if len(sizes) <= _SIZES:
        return str(list(sizes))
    return f"[{', '.join(map(str, sizes[:_SIZES]))}, ...]"


def shortened(value: object) -> str:
    """Return the ``repr`` of a value, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."
