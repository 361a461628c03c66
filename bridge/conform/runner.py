# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a subject, each in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import mmap
import re
from collections.abc import Callable, Iterable

from bridge.annotation import Any
from bridge.conform.cases import CASES, parts_of, watches_lives
from bridge.conform.isolation import isolated
from bridge.conform.kit.verdict import Broken, Skip
from bridge.conform.programs import LEVELS, program_of
from bridge.conform.report import Result
from bridge.conform.rule import Rule
from bridge.conform.trimming import FILE, traced, trimmed

_HANGS = 3  # after which the rest of a role is not tried
_LONGEST = 600  # characters of an observation


def run_rules(
    rules: Iterable[Rule], parts: dict[str, Any], setup: str, given: dict[str, Any]
) -> list[Result]:
    """Return the result of each rule.

    parts: the subject's functions by name. setup: the lines of a program that define them, in which
    the names of `given` are known.
    """
    hangs: dict[str, int] = {}
    results = []
    for rule in rules:
        needed = parts_of(CASES[rule])
        missing = [name for name, must in needed.items() if must and name not in parts]
        if missing:
            result = Result(rule, "n/a", f"the subject has no {' and no '.join(missing)}")
        elif hangs.get(rule.role, 0) >= _HANGS:
            result = Result(rule, "n/a", f"{_HANGS} cases of the {rule.role} hung before")
        else:
            arguments = {name: parts[name] for name in needed if name in parts}
            lives = watches_lives(CASES[rule])
            if "make" in arguments and not lives:
                arguments["make"] = _lasting(arguments["make"])
            outcome, seen = _outcome(lambda: _called(CASES[rule], arguments), lives)  # noqa: B023
            result = Result(rule, outcome, seen)
            hangs[rule.role] = hangs.get(rule.role, 0) + (outcome == "hang")
        if result.outcome in ("broken", "crash", "hang"):
            result.program, shows = _evidence(result, setup, given)
            if not shows:
                result.seen += " (the program alone does not show it)"
        results.append(result)
    return results


def _lasting(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `make`, whose tensors and arrays last until the process ends.

    What a deleter frees too early or twice is another rule's matter.
    """

    def made(array: Any) -> Any:
        tensor = make(array)
        for one in (array, array.base, tensor, *gc.get_referents(tensor)):
            for _ in range(100):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
        return tensor

    return made


def _called(case: Callable[..., None], arguments: dict[str, Any]) -> list[str]:
    """Return the outcome of a case in this process and the observation."""
    try:
        case(**arguments)
    except Skip as skipped:
        reason = str(skipped)
        return ["ok", ""] if reason.startswith("ok: ") else ["n/a", reason]
    except Broken as broken:
        return ["broken", str(broken)]
    except BaseException as error:  # noqa: BLE001  whatever the subject raised
        return ["broken", f"it raised {type(error).__name__}: {error}"]
    return ["ok", ""]


def _outcome(call: Callable[[], list[str]], lives: bool) -> tuple[str, str]:
    how, result = isolated(call, spoil=lives)
    outcome, seen = result if how == "done" else (how, result)
    return outcome, _without_addresses(" ".join(seen.split()))[:_LONGEST]


def _without_addresses(text: str) -> str:
    """Return a text without addresses and the modules of classes, which differ in each run."""
    text = re.sub(r"<(\w+\.)*(Short)?(\w+) object at 0x[0-9a-fA-F]+>", r"<\3 object>", text)
    return re.sub(r"0x[0-9a-fA-F]{4,}", "0x…", text)


def _evidence(result: Result, setup: str, given: dict[str, Any]) -> tuple[str, bool]:
    """Return the shortest program that shows a result, and whether one does."""
    case = CASES[result.rule]
    lives = watches_lives(case)
    whole = program_of(result.rule, case, setup, *LEVELS[-1])
    wanted = _shown(whole, given, lives)
    shows = wanted is not None and result.seen[20:500] in " ".join(wanted.split())
    if not shows or result.outcome == "hang":
        return whole, shows
    for level in LEVELS:
        program = program_of(result.rule, case, setup, *level)
        ran = mmap.mmap(-1, program.count("\n") + 2)  # the process may crash: its lines are seen
        if _shown(program, given, lives, ran) == wanted:
            for tests in (False, True):
                shorter = trimmed(program, ran, tests=tests)
                if _shown(shorter, given, lives) == wanted:
                    return shorter, True
    return whole, True


def _shown(program: str, given: dict[str, Any], lives: bool, ran: Any = None) -> str | None:
    """Run a program in a process of its own; return what it showed; None: nothing broken.

    ran: memory shared with that process, a byte for each line, set to 1 where the line ran.
    """

    def execute() -> None:
        exec(compile(program, FILE, "exec"), {"__name__": "__main__", **given})

    def run() -> str | None:
        try:
            traced(execute, ran) if ran is not None else execute()
        except SystemExit as exit_:
            return None if exit_.code in (None, 0) else f"exit: {exit_.code}"
        except BaseException as error:  # noqa: BLE001  the error of the subject is the observation
            return f"{type(error).__name__}: {error}"
        return None

    how, shown = isolated(run, spoil=lives)
    if shown is None:
        return None
    return _without_addresses(shown if how == "done" else f"{how}: {shown}")
