# SPDX-License-Identifier: Apache-2.0
"""The EnforceNotMet that says whose fault a failure was, of whatever kind the failure is."""

from __future__ import annotations

from bridge.c10.errors import (
    EnforceBufferError,
    EnforceIndexError,
    EnforceKeyError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)

__all__ = ["EnforceAttributeError", "EnforceMemoryError", "GaveFalse", "refusal"]


class EnforceAttributeError(EnforceNotMet, AttributeError):
    """A broken invariant that is a matter of an attribute, too."""


class EnforceMemoryError(EnforceNotMet, MemoryError):
    """A broken invariant that is an allocation that could not be met, too."""


class GaveFalse(EnforceNotMet):
    """An operator's RunOnDevice said by its result that it failed."""


_KINDS: tuple[tuple[type[Exception], type[EnforceNotMet]], ...] = (
    (TypeError, EnforceTypeError),
    (ValueError, EnforceValueError),
    (BufferError, EnforceBufferError),
    (MemoryError, EnforceMemoryError),
    (KeyError, EnforceKeyError),
    (IndexError, EnforceIndexError),
)


def refusal(message: str, caller: str, cause: Exception) -> EnforceNotMet:
    """Make the EnforceNotMet of what `cause` stopped; it is of the built-in kind of `cause`, too.

    To be raised ``from cause``, whose words follow `message`.

    >>> from bridge.caffe2.refusal import refusal
    >>> error = refusal("Blob 'x' cannot be fed", "FeedBlob", TypeError("it is None"))
    >>> print(error, isinstance(error, TypeError))
    [enforce fail at FeedBlob] Blob 'x' cannot be fed: it is None True
    """
    kind = next((ours for theirs, ours in _KINDS if isinstance(cause, theirs)), EnforceNotMet)
    if isinstance(cause, EnforceNotMet):
        return kind(f"{message}: {cause.message}", cause.condition, caller)
    return kind(f"{message}: {str(cause) or type(cause).__name__}", "", caller)
