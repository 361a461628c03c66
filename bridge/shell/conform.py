# SPDX-License-Identifier: Apache-2.0
"""``bridge conform``: libraries against the rules of DLPack, as producers and as consumers."""

from __future__ import annotations

import argparse

from bridge.annotation import Any
from bridge.shell.usage_errors import CommandError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.conform import Report

_EXAMPLES = """\
examples:
  bridge conform
  bridge conform torch numpy
  bridge conform torch --rule consumer-strides-negative
  bridge conform torch numpy --pairs --json
"""


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "conform",
        help="check libraries against the rules of DLPack",
        description="Check each library, as producer and as consumer, against the rules of DLPack "
        "and of the Python array API standard, each case in a process of its own. Exit status 1 if "
        "a rule is broken.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "libraries", nargs="*", metavar="LIBRARY", help="only these (default: all installed)"
    )
    parser.add_argument(
        "--rule", action="append", metavar="ID", help="only this rule; may be repeated"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--pairs",
        action="store_true",
        help="also pass a tensor from each library to each, and count bytes and deleters",
    )
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    from bridge.conform import check
    from bridge.conform.libraries import LIBRARIES, installed
    from bridge.conform.pairs import check_pairs, pair_is_broken
    from bridge.conform.rules import chosen_rules
    from bridge.shell.text_tables import as_json

    try:
        rules = chosen_rules(parsed.rule)
        for name in parsed.libraries:
            if not installed(name):
                raise UsageError(f"the library {name!r} is not installed")
    except ValueError as error:
        raise UsageError(str(error)) from error
    names = list(dict.fromkeys(parsed.libraries)) or [one for one in LIBRARIES if installed(one)]
    try:
        reports = [check(name, rules) for name in names]
        pairs = check_pairs(names) if parsed.pairs else None
    except RuntimeError as error:
        raise CommandError(str(error)) from error
    if parsed.json:
        found: dict[str, Any] = {"libraries": [report.to_dict() for report in reports]}
        if pairs is not None:
            found["pairs"] = pairs
        print(as_json(found))
    else:
        for report in reports:
            _print(report)
        if pairs is not None:
            _print_pairs(pairs)
    broken = any(report.broken for report in reports) or any(map(pair_is_broken, pairs or ()))
    return 1 if broken else 0


def _print(report: Report) -> None:
    """Print the table of a library, then the broken rules."""
    from bridge.shell.text_tables import print_table

    print(f"{report.name} {report.version or ''}".rstrip())
    rows = [
        [
            str(one.rule),
            one.outcome if one.rule.role == "producer" else "",
            one.outcome if one.rule.role == "consumer" else "",
            one.seen,
        ]
        for one in report.results
    ]
    print_table(["rule", "producer", "consumer", "what happened"], rows)
    print()
    print(report)
    print()


def _print_pairs(pairs: list[dict[str, Any]]) -> None:
    from bridge.shell.text_tables import print_table

    head = [
        "producer",
        "consumer",
        "outcome",
        "values",
        "bytes before",
        "after",
        "deleters",
        "seen",
    ]
    keys = ("producer", "consumer", "outcome", "values", "bytes_before", "bytes_after", "deleters")
    rows = [
        [*("" if one[key] is None else str(one[key]) for key in keys), one["seen"]] for one in pairs
    ]
    print_table(head, rows, right="4 5 6")
