# SPDX-License-Identifier: Apache-2.0
"""``python -m bridge.conform.worker DESCRIPTOR REQUEST``: checks a library in a fresh process.

The library is imported here and computes nothing: each case is a fork of this process, so that no
thread of the library is missing in it. REQUEST is JSON: ``{"library": name, "rules": [ids]}``. The
answer, a list of results as JSON, is written to DESCRIPTOR.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings

import numpy as np

from bridge.conform.isolation import isolated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["main"]

_WARM = 60.0  # seconds for the first use


def main(descriptor: int, request: dict[str, Any]) -> None:
    """Check a library and write the results."""
    from bridge.conform.cases import PARTS
    from bridge.conform.checking import chosen_rules
    from bridge.conform.libraries import setup_of, version_of
    from bridge.conform.report import Result
    from bridge.conform.runner import run_rules

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    rules = chosen_rules(request["rules"])
    name = request["library"]
    setup = setup_of(name)
    known: dict[str, Any] = {}
    try:
        exec(compile(setup, f"<{name}>", "exec"), known)
        _import_what_is_used(known)
    except Exception as error:  # noqa: BLE001  whatever a broken library raises
        reason = " ".join(f"it cannot be imported: {type(error).__name__}: {error}".split())
        results = [Result(rule, "n/a", reason) for rule in rules]
    else:
        parts = {part: known[part] for part in PARTS if part in known}
        results = run_rules(rules, parts, setup, {})
    answer = {
        "version": version_of(name),
        "results": [[one.rule, one.outcome, one.seen, one.program] for one in results],
    }
    with open(descriptor, "w") as pipe:
        json.dump(answer, pipe)


def _import_what_is_used(known: dict[str, Any]) -> None:
    """Import the modules that a library imports when it is first used, without using it here."""

    def used() -> list[str]:
        before = set(sys.modules)
        array = np.arange(6.0)
        for call in (
            lambda: known["to_numpy"](known["make"](array)),
            lambda: known["from_dlpack"](array),
            lambda: known["make"](array).__dlpack__(max_version=(1, 3)),
            lambda: known["to_numpy"](known["from_dlpack"](array)),
        ):
            try:
                call()
            except Exception:  # noqa: BLE001  a part may be missing, or refuse
                continue
        return [module for module in sys.modules if module not in before]

    how, modules = isolated(used, _WARM)
    for module in modules if how == "done" else ():
        try:
            importlib.import_module(module)
        except Exception:  # noqa: BLE001  it is made at run time, or no module
            continue


if __name__ == "__main__":
    main(int(sys.argv[1]), json.loads(sys.argv[2]))
