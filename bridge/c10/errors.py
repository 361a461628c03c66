# SPDX-License-Identifier: Apache-2.0
"""EnforceNotMet, the error of a broken invariant.

The subclasses that are also built-in errors let one refusal honour two
contracts: a wrong kind of argument is a ``TypeError`` to a Python programmer
and an ``EnforceNotMet`` to somebody who ports Caffe2 code.
"""

from __future__ import annotations

__all__ = [
    "EnforceAssertionError",
    "EnforceBufferError",
    "EnforceIndexError",
    "EnforceKeyError",
    "EnforceNotMet",
    "EnforceTypeError",
    "EnforceValueError",
]


class EnforceNotMet(RuntimeError):
    """A condition that the bridge relies on does not hold.

    Parameters
    ----------
    message: what was met, and what to do instead.
    condition: the failed condition, as one would write it.
    caller: the public method that was called, such as ``"Tensor.ShareData"``.

    Follows c10::Error as raised by CAFFE_ENFORCE, c10/util/Exception.h,
    PyTorch 1.8.1.

    >>> from bridge.c10 import EnforceNotMet
    >>> error = EnforceNotMet("Call Resize first.", "dim() >= 1", "Tensor.Extend")
    >>> print(error)
    [enforce fail at Tensor.Extend] dim() >= 1. Call Resize first.
    """

    def __init__(self, message: str = "", condition: str = "", caller: str = "") -> None:
        super().__init__(message, condition, caller)
        self.message = message
        self.condition = condition
        self.caller = caller

    def __str__(self) -> str:
        head = f"[enforce fail at {self.caller}] " if self.caller else ""
        condition = f"{self.condition}. " if self.condition else ""
        return f"{head}{condition}{self.message}"


class EnforceTypeError(EnforceNotMet, TypeError):
    """A broken invariant that is a wrong kind of argument, too."""


class EnforceValueError(EnforceNotMet, ValueError):
    """A broken invariant that is a wrong value, too."""


class EnforceIndexError(EnforceNotMet, IndexError):
    """A broken invariant that is an index out of range, too."""


class EnforceBufferError(EnforceNotMet, BufferError):
    """A broken invariant that keeps memory from being exchanged, too."""


class EnforceKeyError(EnforceNotMet, KeyError):
    """A broken invariant that is an unknown name, too."""


class EnforceAssertionError(EnforceNotMet, AssertionError):
    """A broken invariant that Caffe2's Python asserts, too."""
