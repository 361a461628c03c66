# SPDX-License-Identifier: Apache-2.0
"""Errors of several kinds, and wrapping any exception in an EnforceNotMet."""

from __future__ import annotations

from bridge.c10.errors import (
    EnforceBufferError,
    EnforceIndexError,
    EnforceKeyError,
    EnforceNotMet,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.exchange.torch_devices import lacks_memory


class EnforceAttributeError(EnforceNotMet, AttributeError):
    """An EnforceNotMet that is also an AttributeError."""


class EnforceMemoryError(EnforceNotMet, MemoryError):
    """An EnforceNotMet that is also a MemoryError."""


class ReturnedFalseError(EnforceNotMet):
    """An operator's RunOnDevice returned False."""


_KINDS: tuple[tuple[type[Exception], type[EnforceNotMet]], ...] = (
    (TypeError, EnforceTypeError),
    (ValueError, EnforceValueError),
    (BufferError, EnforceBufferError),
    (MemoryError, EnforceMemoryError),
    (KeyError, EnforceKeyError),
    (IndexError, EnforceIndexError),
)


def wrap_error(message: str, caller: str, cause: Exception) -> EnforceNotMet:
    """Return an EnforceNotMet that also has the built-in type of `cause`.

    It is a MemoryError where torch lacked memory, too. Its message is `message` and that of
    `cause`. To be raised ``from cause``.

    >>> from bridge.caffe2.base.wrapped_errors import wrap_error
    >>> error = wrap_error("Blob 'x' cannot be fed", "FeedBlob", TypeError("it is None"))
    >>> print(error, isinstance(error, TypeError))
    [enforce fail at FeedBlob] Blob 'x' cannot be fed: it is None True
    """
    kind = next((ours for theirs, ours in _KINDS if isinstance(cause, theirs)), EnforceNotMet)
    if kind is EnforceNotMet and isinstance(cause, RuntimeError) and lacks_memory(cause):
        kind = EnforceMemoryError
    if isinstance(cause, EnforceNotMet):
        return kind(f"{message}: {cause.message}", caller, condition=cause.condition)
    return kind(f"{message}: {_reason(cause, message)}", caller)


class wrapping:
    """A block whose exceptions, those of `kinds`, are raised as `wrap_error` makes them."""

    __slots__ = ("caller", "kinds", "message")

    def __init__(
        self,
        message: str,
        caller: str,
        kinds: type[Exception] | tuple[type[Exception], ...] = Exception,
    ) -> None:
        self.message = message
        self.caller = caller
        self.kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, cause: BaseException | None, traceback: object) -> None:
        if isinstance(cause, self.kinds):
            raise wrap_error(self.message, self.caller, cause) from cause


def _reason(cause: Exception, message: str) -> str:
    """Return the text of an error, without the name of a file that `message` has or is unknown."""
    if isinstance(cause, OSError) and cause.strerror:
        name = str(cause.filename)
        if repr(name)[1:-1] in message or name.endswith(".tmp"):
            return cause.strerror
    return str(cause) or type(cause).__name__


# For an EnforceNotMet and a class of exceptions the class that is both; None: it cannot exist.
_mixed: dict[tuple[type[EnforceNotMet], type[Exception]], type[EnforceNotMet] | None] = {}


def also_as(error: EnforceNotMet, cause: Exception) -> EnforceNotMet:
    """Return `error` as an error that also has the class and attributes of `cause`.

    A script can then catch its own exceptions around a net. `error` is returned unchanged if there
    cannot be such a class, or the class has a meaning for Python, as StopIteration.

    >>> from bridge.caffe2.base.wrapped_errors import also_as, wrap_error
    >>> class NoData(Exception):
    ...     pass
    >>> cause = NoData("file 3")
    >>> error = also_as(wrap_error("The operator failed", "RunNet", cause), cause)
    >>> print(error, isinstance(error, NoData), isinstance(error, RuntimeError))
    [enforce fail at RunNet] The operator failed: file 3 True True
    """
    ours, kind = type(error), type(cause)
    if isinstance(error, kind) or isinstance(cause, (EnforceNotMet, *_OF_PYTHON)):
        return error
    if (ours, kind) not in _mixed:
        _mixed[ours, kind] = _both(ours, kind)
    cls = _mixed[ours, kind]
    if cls is None:
        return error
    mixed = cls.__new__(cls)
    # Not the constructor of the script's exception, whose arguments are unknown.
    RuntimeError.__init__(mixed, *error.args)
    mixed.__dict__.update({**vars(cause), **vars(error)})
    return mixed


_OF_PYTHON = (StopIteration, StopAsyncIteration)


def _both(ours: type[EnforceNotMet], kind: type[Exception]) -> type[EnforceNotMet] | None:
    """Return a class that derives from `ours` and `kind`; None if Python refuses it."""

    def plain(error: EnforceNotMet) -> tuple[type[EnforceNotMet], tuple[str, str], dict[str, str]]:
        return ours, (error.message, error.caller), {"condition": error.condition}

    try:
        cls: type[EnforceNotMet] = type(
            kind.__name__, (ours, kind), {"__reduce__": plain, "__module__": __name__}
        )
        cls.__new__(cls)
    except TypeError:
        return None
    return cls
