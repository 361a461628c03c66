# SPDX-License-Identifier: Apache-2.0
"""`check`: a subject against the rules."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.conform import worker
from bridge.conform.libraries import installed
from bridge.conform.loading import PARTS
from bridge.conform.processes import ask
from bridge.conform.report import Report, Result
from bridge.conform.rule import Rule
from bridge.conform.rules import chosen_rules
from bridge.conform.runner import run_rules


def check(subject: Any, rules: Iterable[str] | None = None) -> Report:
    """Check a library, as producer and as consumer, against the rules of DLPack.

    subject: the name of a library, or an object with ``name``, ``make(numpy_array) -> tensor``,
    ``from_dlpack(x, **kwargs)`` and ``to_numpy(tensor)``. Each may be missing, which skips the
    rules that need it. Each case runs in a forked process of its own; the object need not pickle.

    rules: the ids of those to check; by default all.

    Raises ValueError: a rule or the library is unknown, or the library is not installed.
    """
    chosen = chosen_rules(rules)
    if isinstance(subject, str):
        return _check_library(subject, chosen)
    parts = {}
    for name in PARTS:
        part = getattr(subject, name, None)
        if part is not None:
            parts[name] = part
    setup = "# subject is the object that was checked\n"
    setup += "".join(f"{name} = subject.{name}\n" for name in parts)
    version = getattr(subject, "version", None)
    return Report(
        str(getattr(subject, "name", type(subject).__name__)),
        None if version is None else str(version),
        run_rules(chosen, parts, setup, {"subject": subject}),
    )


def _check_library(name: str, rules: list[Rule]) -> Report:
    if not installed(name):
        raise ValueError(f"the library {name!r} is not installed")
    request = {"library": name, "rules": list(rules)}
    answer = ask(worker.__name__, request)
    results = [Result(rule, *rest[1:]) for rule, rest in zip(rules, answer["results"], strict=True)]
    return Report(name, answer["version"], results)
