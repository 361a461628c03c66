# SPDX-License-Identifier: Apache-2.0
"""Errors of commands, and how an error becomes one line."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet

__all__ = ["CommandError", "UsageError", "one_line"]


class CommandError(Exception):
    """A command failed: exit status 1. Its text is for the user, and is one line."""


class UsageError(CommandError):
    """A command was called in a wrong way: exit status 2."""


def one_line(error: BaseException) -> str:
    """Return what to tell the user of an error, in one line.

    The text alone if it was written for users, else with the name of the class.

    >>> from bridge.shell.errors import one_line
    >>> one_line(FileNotFoundError(2, "No such file or directory", "a.pb"))
    "No such file or directory: 'a.pb'"
    """
    if isinstance(error, EnforceNotMet):
        text = error.message or str(error)
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.strerror}: {error.filename!r}"
    elif isinstance(error, MemoryError):
        text = f"not enough memory {error}".strip()
    elif isinstance(error, CommandError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return " ".join(text.split())
