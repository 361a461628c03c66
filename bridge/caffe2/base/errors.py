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

__all__ = [
    "EnforceAttributeError",
    "EnforceMemoryError",
    "ReturnedFalseError",
    "also_as",
    "wrap_error",
]


class EnforceAttributeError(EnforceNotMet, AttributeError):
    """A broken invariant that is a matter of an attribute, too."""


class EnforceMemoryError(EnforceNotMet, MemoryError):
    """A broken invariant that is an allocation that could not be met, too."""


class ReturnedFalseError(EnforceNotMet):
    """An operator's RunOnDevice said by its result that it failed."""


_KINDS: tuple[tuple[type[Exception], type[EnforceNotMet]], ...] = (
    (TypeError, EnforceTypeError),
    (ValueError, EnforceValueError),
    (BufferError, EnforceBufferError),
    (MemoryError, EnforceMemoryError),
    (KeyError, EnforceKeyError),
    (IndexError, EnforceIndexError),
)


def wrap_error(message: str, caller: str, cause: Exception) -> EnforceNotMet:
    """Make the EnforceNotMet of what `cause` stopped; it is of the built-in kind of `cause`, too.

    To be raised ``from cause``, whose words follow `message`.

    >>> from bridge.caffe2.base.errors import wrap_error
    >>> error = wrap_error("Blob 'x' cannot be fed", "FeedBlob", TypeError("it is None"))
    >>> print(error, isinstance(error, TypeError))
    [enforce fail at FeedBlob] Blob 'x' cannot be fed: it is None True
    """
    kind = next((ours for theirs, ours in _KINDS if isinstance(cause, theirs)), EnforceNotMet)
    if isinstance(cause, EnforceNotMet):
        return kind(f"{message}: {cause.message}", caller, condition=cause.condition)
    return kind(f"{message}: {str(cause) or type(cause).__name__}", caller)


# For kinds of exceptions, the EnforceNotMet that is of that kind, too; None: there can be none.
_mixed: dict[type[Exception], type[EnforceNotMet] | None] = {}


def also_as(error: EnforceNotMet, cause: Exception) -> EnforceNotMet:
    """Return `error` as one that is of the kind of `cause`, too, with the attributes of that.

    For exceptions of a script's own, which the script catches around a net. What cannot be both, or
    means something else to Python, as StopIteration does, gives `error` as it is.

    >>> from bridge.caffe2.base.errors import also_as, wrap_error
    >>> class NoData(Exception):
    ...     pass
    >>> cause = NoData("file 3")
    >>> error = also_as(wrap_error("The operator failed", "RunNet", cause), cause)
    >>> print(error, isinstance(error, NoData), isinstance(error, RuntimeError))
    [enforce fail at RunNet] The operator failed: file 3 True True
    """
    kind = type(cause)
    if isinstance(error, kind) or isinstance(cause, (EnforceNotMet, *_OF_PYTHON)):
        return error
    if kind not in _mixed:
        _mixed[kind] = _both(kind)
    cls = _mixed[kind]
    if cls is None:
        return error
    made = cls.__new__(cls)
    # Not the constructor of the script's exception, which may take anything.
    RuntimeError.__init__(made, *error.args)
    made.__dict__.update({**vars(cause), **vars(error)})
    return made


_OF_PYTHON = (StopIteration, StopAsyncIteration)


def _both(kind: type[Exception]) -> type[EnforceNotMet] | None:
    def plain(error: EnforceNotMet) -> tuple[type[EnforceNotMet], tuple[str, str], dict[str, str]]:
        return EnforceNotMet, (error.message, error.caller), {"condition": error.condition}

    try:
        cls: type[EnforceNotMet] = type(
            kind.__name__, (EnforceNotMet, kind), {"__reduce__": plain, "__module__": __name__}
        )
        cls.__new__(cls)
    except TypeError:
        return None
    return cls
