# SPDX-License-Identifier: Apache-2.0
"""Results of the rules, and the report of a subject."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.conform.rule import Rule

BROKEN = ("broken", "crash", "hang")


class Result:
    """The result of one rule.

    rule: the `Rule`, which is a str, its id. outcome: ``"ok"``, ``"broken"``, ``"crash"``,
    ``"hang"`` or ``"n/a"``. seen: the observation, or the reason of ``"n/a"``; empty if ok.
    program: Python code that shows a broken rule without the bridge, else None.
    """

    __slots__ = ("outcome", "program", "rule", "seen")

    def __init__(
        self, rule: Rule, outcome: str, seen: str = "", program: str | None = None
    ) -> None:
        self.rule, self.outcome, self.seen, self.program = rule, outcome, seen, program

    def __repr__(self) -> str:
        return f"<{self.outcome}: {self.rule}{': ' if self.seen else ''}{self.seen}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain Python objects, fit for JSON."""
        return {
            "rule": str(self.rule),
            "role": self.rule.role,
            "outcome": self.outcome,
            "text": self.rule.text,
            "source": self.rule.source,
            "level": self.rule.level,
            "seen": self.seen,
            "program": self.program,
        }


class Report:
    """The results of one subject, each chosen rule once, in the order of `RULES`."""

    def __init__(self, name: str, version: str | None, results: list[Result]) -> None:
        self.name, self.version, self.results = name, version, results

    @property
    def broken(self) -> list[Result]:
        """The results ``"broken"``, ``"crash"`` and ``"hang"``."""
        return [one for one in self.results if one.outcome in BROKEN]

    @property
    def ok(self) -> list[Result]:
        """The results ``"ok"``."""
        return [one for one in self.results if one.outcome == "ok"]

    @property
    def skipped(self) -> list[Result]:
        """The results ``"n/a"``: rules that cannot be held against this subject."""
        return [one for one in self.results if one.outcome == "n/a"]

    def __repr__(self) -> str:
        return (
            f"<Report of {self.name}: {len(self.broken)} broken, {len(self.ok)} ok, "
            f"{len(self.skipped)} n/a>"
        )

    def __str__(self) -> str:
        named = f"{self.name} {self.version}" if self.version else self.name
        lines = [
            f"{named}: {len(self.broken)} of {len(self.results)} rules broken, "
            f"{len(self.ok)} ok, {len(self.skipped)} n/a"
        ]
        for one in self.broken:
            lines += [
                "",
                f"{one.outcome}: {one.rule} ({one.rule.level})",
                f"  {one.rule.text}",
                f"  [{one.rule.source}]",
                f"  seen: {one.seen}",
            ]
            if one.program:
                lines += [
                    "  program:",
                    *(f"    {line}".rstrip() for line in one.program.splitlines()),
                ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain Python objects, fit for JSON."""
        return {
            "name": self.name,
            "version": self.version,
            "results": [one.to_dict() for one in self.results],
        }

    def assert_ok(self) -> None:
        """Raise AssertionError, with all that is broken as its text, unless nothing is."""
        if self.broken:
            raise AssertionError(str(self))
