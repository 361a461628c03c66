# SPDX-License-Identifier: Apache-2.0
"""``bridge doctor``: the frameworks that are installed, and how each conversion goes here.

Frameworks are imported in a child process (`bridge.shell.probe`). One that crashes it, or does not
return in time, is a row of the table; the child is started again without it.
"""

from __future__ import annotations

import argparse
from typing import Any

_EXAMPLES = """\
examples:
  bridge doctor
  bridge doctor --json
  bridge doctor torch jax
"""
_TIMEOUT = 60.0  # seconds for an import, or a conversion


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "doctor",
        help="show the installed frameworks and measure the conversions between them",
        description="Show the frameworks that are installed, and convert a tensor from each to "
        "each: whether memory is shared or copied, and how long it takes. Exit status 1 if a "
        "framework is broken or a conversion is wrong.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("frameworks", nargs="*", metavar="FRAMEWORK", help="only these")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=_TIMEOUT,
        metavar="SECONDS",
        help=f"the longest time for one import or conversion (default {_TIMEOUT:.0f})",
    )
    parser.set_defaults(run=_run)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds")
    return value


def _run(parsed: argparse.Namespace) -> int:
    from bridge.shell.diagnosis import diagnose
    from bridge.shell.text_tables import as_json

    found = diagnose(parsed.frameworks, parsed.timeout)
    if parsed.json:
        print(as_json(found))
    else:
        _print(found)
    return 0 if found["ok"] else 1


def _print(found: dict[str, Any]) -> None:
    from bridge.shell.text_tables import print_table

    print(f"bridge {found['bridge']}, Python {found['python']}, {found['platform']}")
    print()
    rows = [
        [one["name"], one["version"] or "", f"broken: {one['reason']}" if one["reason"] else "ok"]
        for one in found["frameworks"]
    ]
    print_table(["framework", "version", "state"], rows)
    if found["missing"]:
        print(f"not installed: {', '.join(found['missing'])}")
    for one in found["frameworks"]:
        for what, since in one["lacks"].items():
            print(f"{one['name']} {one['version']} lacks {what}: {one['name']} {since} has it")
    print()
    processes = found["processes"]
    print(f"sharing between processes: {processes['reason'] or processes['result']}")
    print()
    names = [one["name"] for one in found["frameworks"] if not one["reason"]]
    cells = {(one["source"], one["target"]): one for one in found["conversions"]}
    table = [[source, *[_cell(cells[source, target]) for target in names]] for source in names]
    print_table(["from \\ to", *names], table)
    for one in found["conversions"]:
        if one["result"] == "error":
            print(f"error: {one['source']} -> {one['target']}: {one['reason']}")


def _cell(one: dict[str, Any]) -> str:
    if one["result"] == "error":
        return "error: below"
    seconds = one["seconds"]
    time = f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"
    return f"{one['result']} {time}"
