# SPDX-License-Identifier: Apache-2.0
"""``python -m bridge.conform.worker DESCRIPTOR REQUEST``: checks a library in a fresh process.

The library is imported here and computes nothing: each case is a fork of this process, so that no
thread of the library is missing in it. REQUEST is JSON: ``{"library": name, "rules": [ids]}``, or
``{"pairs": [[producer, consumer]]}``. The answer is written to DESCRIPTOR, as JSON: the version and
the results, or a list of pairs.
"""

from __future__ import annotations

import json
import sys

from bridge.annotation import Any
from bridge.conform.exchanges import exchanged
from bridge.conform.libraries import setup_of, version_of
from bridge.conform.loading import loaded
from bridge.conform.report import Result
from bridge.conform.rules import chosen_rules
from bridge.conform.runner import run_rules


def main(descriptor: int, request: dict[str, Any]) -> None:
    """Do the task, and write the answer."""
    answer = _pairs(request["pairs"]) if "pairs" in request else _library(request)
    with open(descriptor, "w", encoding="utf-8") as pipe:
        json.dump(answer, pipe)


def _library(request: dict[str, Any]) -> dict[str, Any]:
    rules = chosen_rules(request["rules"])
    name = request["library"]
    try:
        parts = loaded(name)
    except Exception as error:  # noqa: BLE001  whatever a broken library raises
        results = [Result(rule, "n/a", _not_imported(error)) for rule in rules]
    else:
        results = run_rules(rules, parts, setup_of(name), {})
    return {
        "version": version_of(name),
        "results": [[one.rule, one.outcome, one.seen, one.program] for one in results],
    }


def _pairs(pairs: list[list[str]]) -> list[dict[str, Any]]:
    parts: dict[str, Any] = {}
    names = dict.fromkeys(name for pair in pairs for name in pair)
    # Paddle first: it ends the process when it is imported after TensorFlow.
    for name in sorted(names, key=lambda name: name != "paddle"):
        try:
            parts[name] = loaded(name)
        except Exception as error:  # noqa: BLE001  whatever a broken library raises
            parts[name] = _not_imported(error)
    return [
        {"producer": producer, "consumer": consumer, **exchanged(parts[producer], parts[consumer])}
        for producer, consumer in pairs
    ]


def _not_imported(error: Exception) -> str:
    return " ".join(f"it cannot be imported: {type(error).__name__}: {error}".split())


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
