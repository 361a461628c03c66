# SPDX-License-Identifier: Apache-2.0
"""Errors of commands, and how an error becomes one line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.c10.errors import EnforceNotMet


class CommandError(Exception):
    """A command failed: exit status 1. Its text is for the user, and is one line."""


class UsageError(CommandError):
    """A command was called in a wrong way: exit status 2."""


@contextmanager
def about(*paths: str) -> Iterator[None]:
    """Prefix errors raised inside with the first file, unless they name one of the files."""
    try:
        yield
    except (BrokenPipeError, CommandError):
        raise
    except Exception as error:
        text = one_line(error)
        if any(_named(path, text) for path in paths):
            raise
        raise CommandError(f"{_shown(repr(paths[0]))}: {text}") from error


def _named(path: str, text: str) -> bool:
    return any(_shown(repr(one)) in text for one in (path, os.path.realpath(path)))


def _shown(text: str) -> str:
    """Return text with the bytes of file names that the locale cannot decode as they are."""
    return re.sub(r"\\udc([89a-f][0-9a-f])", lambda found: chr(0xDC00 + int(found[1], 16)), text)


def one_line(error: BaseException) -> str:
    """Return the text of an error for the user, in one line.

    The text alone if it was written for users, else with the name of the class.

    >>> from bridge.shell.usage_errors import one_line
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
    return " ".join(_shown(text).split())
