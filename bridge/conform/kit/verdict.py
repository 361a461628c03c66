# SPDX-License-Identifier: Apache-2.0
"""How a case ends that is not `ok`. In a program, `broken` and `skip` are `sys.exit`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


class Broken(Exception):
    """The rule is broken; the text is the observation."""


class Skip(Exception):
    """The rule cannot be held against this subject; the text is the reason."""


def broken(seen: str) -> NoReturn:
    """End the case: the rule is broken."""
    raise Broken(seen)


def skip(reason: str) -> NoReturn:
    """End the case: it does not apply."""
    raise Skip(reason)
