# SPDX-License-Identifier: Apache-2.0
"""Print the table of ratios; exit with 1 if one misses what it must be.

`python -m tests.benchmarks --help` says what can be chosen.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import real_caffe2
from tests.benchmarks.harness import Effort, Row, table

GROUPS = (
    "wrappers",
    "exchange",
    "libraries",
    "trees",
    "functions",
    "real_caffe2",
    "nets",
    "operators",
    "serialization",
    "tensors",
    "scaling",
    "processes",
    "startup",
    "memory",
    "threads",
)
MARKER = "<!-- figures -->"


def measure(groups: list[str], effort: Effort) -> Iterator[Row]:
    """Run the groups, showing each row on standard error as it comes."""
    for group in groups:
        for row in importlib.import_module(f"tests.benchmarks.{group}").rows(effort):
            figures = f"{row.outcome.figure:8.3f} {row.verdict:7}"
            print(f"{figures} {row.what} over {row.over}", file=sys.stderr)
            yield row


def insert(file: Path, text: str) -> None:
    """Put `text` between the two markers of a file."""
    before = file.read_text(encoding="utf-8")
    after, count = re.subn(
        f"{MARKER}\n.*{MARKER}", lambda _: f"{MARKER}\n{text}\n{MARKER}", before, flags=re.DOTALL
    )
    if count != 1:
        raise SystemExit(f"{file} has no place between two lines {MARKER}")
    file.write_text(after, encoding="utf-8")


def merged(file: Path, text: str) -> str:
    """Return the table in `file` with the rows of the table `text`: in place of those for the same
    `what` and `over`, new ones at the end.
    """
    old = file.read_text(encoding="utf-8").split(MARKER)[1].strip().splitlines()
    rows = {tuple(line.split(" | ")[:2]): line for line in old}
    return "\n".join({**rows, **{tuple(x.split(" | ")[:2]): x for x in text.splitlines()}}.values())


def main() -> int:
    """Parse the arguments, measure, print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("group", nargs="*", help=f"what to measure, of {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=Effort.rounds)
    parser.add_argument("--only", default="", metavar="REGEX", help="of the nets, these alone")
    into = (
        "put the table between the markers of FILE too, such as tests/benchmarks/README.md; "
        "if groups are chosen, their rows alone"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help=into)
    arguments = parser.parse_args()
    unknown = set(arguments.group) - set(GROUPS)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")

    effort = Effort(rounds=arguments.rounds, only=arguments.only)
    rows = list(measure(arguments.group or list(GROUPS), effort))
    text = table(rows)
    print(f"\nPython {platform.python_version()}, {arguments.rounds} rounds\n\n{text}")
    if not os.environ.get(real_caffe2.VARIABLE):
        print(f"\nNo rows against the real Caffe2: {real_caffe2.VARIABLE} names no Python with it.")
    if arguments.write:
        insert(arguments.write, merged(arguments.write, text) if arguments.group else text)
    return any(row.verdict == "MISSED" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
