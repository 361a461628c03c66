# SPDX-License-Identifier: Apache-2.0
"""EnforceNotMet, the error of a condition that does not hold, and its subclasses.

Each subclass is also a built-in error: a wrong argument is a ``TypeError`` to a Python programmer
and an ``EnforceNotMet`` to someone porting Caffe2 code.
"""

from __future__ import annotations


class EnforceNotMet(RuntimeError):
    """A condition that an operation requires does not hold.

    Parameters
    ----------
    message: what failed, and what to do instead.
    caller: the public method that was called, such as ``"Tensor.ShareData"``.
    condition: the failed condition, as source code.

    Follows c10::Error as raised by CAFFE_ENFORCE, c10/util/Exception.h,
    PyTorch 1.8.1.

    >>> from bridge.c10 import EnforceNotMet
    >>> error = EnforceNotMet("Call Resize first.", "Tensor.Extend", condition="dim() >= 1")
    >>> print(error)
    [enforce fail at Tensor.Extend] dim() >= 1. Call Resize first.
    """

    def __init__(self, message: str = "", caller: str = "", *, condition: str = "") -> None:
        # Unpickling calls the class with `args` and then restores `condition` from the attributes.
        super().__init__(message, caller)
        self.message = message
        self.condition = condition
        self.caller = caller

    def __str__(self) -> str:
        head = f"[enforce fail at {self.caller}] " if self.caller else ""
        condition = f"{self.condition}. " if self.condition else ""
        return f"{head}{condition}{self.message}"


class EnforceTypeError(EnforceNotMet, TypeError):
    """An EnforceNotMet for an argument of the wrong type."""


class EnforceValueError(EnforceNotMet, ValueError):
    """An EnforceNotMet for an invalid value."""


class EnforceIndexError(EnforceNotMet, IndexError):
    """An EnforceNotMet for an index out of range."""


class EnforceAttributeError(EnforceNotMet, AttributeError):
    """An EnforceNotMet for an attribute that this tensor does not have."""


class EnforceBufferError(EnforceNotMet, BufferError):
    """An EnforceNotMet for memory that cannot be exchanged."""


class EnforceKeyError(EnforceNotMet, KeyError):
    """An EnforceNotMet for an unknown name."""


class EnforceAssertionError(EnforceNotMet, AssertionError):
    """An EnforceNotMet where Caffe2's Python code has an assertion."""


def shown(value: object) -> str:
    """Return the text of a number, name or class, and for all else only of which type it is.

    Printing a tensor takes long, may copy it from its device, and may fail.

    >>> from bridge.c10.errors import shown
    >>> shown((2, "cpu")), shown(bytearray(3))
    ("(2, 'cpu')", 'An object of type bytearray')
    """
    if _is_short(value):
        return repr(value)
    cls = type(value)
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return f"An object of type {module}{cls.__qualname__}"


def _is_short(value: object) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= 64
    if isinstance(value, (str, bytes)):
        return len(value) < 200
    if isinstance(value, (list, tuple)):
        return len(value) < 10 and all(map(_is_short, value))
    return value is None or isinstance(value, (float, complex, type))
