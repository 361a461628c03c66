# SPDX-License-Identifier: Apache-2.0
"""Errors that name the leaf of a tree at which they arose."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet


def at(path: str, error: Exception) -> Exception:
    """Return an error of the class of `error` whose message begins with the path of the leaf.

    `error` itself where `path` is "", or where its class cannot be made from a message.

    >>> from bridge.trees import at
    >>> at("['weight']", BufferError("It has gaps."))
    BufferError("at ['weight']: It has gaps.")
    """
    if not path:
        return error
    made: Exception
    if isinstance(error, EnforceNotMet):
        made = type(error)(f"at {path}: {error.message}", error.caller, condition=error.condition)
        return made
    message = f"at {path}: {error}"
    try:
        made = type(error)(message)
    except Exception:  # noqa: BLE001  a constructor of its own: its object gets the message
        error.args = (message,)
        return error
    if message not in str(made):
        error.args = (message,)
        return error
    vars(made).update(vars(error))
    return made
