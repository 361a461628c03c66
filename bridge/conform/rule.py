# SPDX-License-Identifier: Apache-2.0
"""A rule, and the documents that rules come from."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

MUST, SHOULD = "must", "should"
HEADER = "dlpack.h 1.3, "
SPECIFICATION = "Python Specification for DLPack, "
_STANDARD = "Python array API standard 2024.12, "
METHOD = _STANDARD + "array.__dlpack__"
DEVICE_METHOD = _STANDARD + "array.__dlpack_device__"
FROM_DLPACK = _STANDARD + "from_dlpack"


class Rule(str):
    """A rule: its id, as a string, with its other properties as attributes.

    id: words with dashes, the first of which is the role. text: the sentence of the specification.
    source: its document and section. role: ``"producer"`` or ``"consumer"``. level: ``"must"``, or
    ``"should"`` where the document only recommends.
    """

    __slots__ = ("id", "level", "role", "source", "text")

    id: str
    level: str
    role: str
    source: str
    text: str

    def __new__(cls, id: str, level: str, source: str, text: str) -> Self:
        """Return a rule; its role is the first word of its id."""
        rule = super().__new__(cls, id)
        rule.id, rule.level, rule.source, rule.text = id, level, source, text
        rule.role = id.partition("-")[0]
        return rule


def rows(*given: tuple[str, str, str, str]) -> tuple[Rule, ...]:
    """Return the rules of a table: id, level, source, text."""
    return tuple(Rule(*row) for row in given)
