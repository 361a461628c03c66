# SPDX-License-Identifier: Apache-2.0
"""``bridge caffe2 run``: a script that imports Caffe2, as by ``python -m bridge.caffe2``."""

from __future__ import annotations

import argparse
from typing import Any

from bridge.shell.usage_errors import UsageError

_EXAMPLES = """\
examples:
  bridge caffe2 run train.py --epochs 3
  bridge caffe2 run -m package.module
"""


def add_to(commands: Any) -> None:
    """Declare the command, for its --help; `run_directly` runs it."""
    parser = commands.add_parser(
        "run",
        help="run a script that imports caffe2",
        description="Run a script that imports caffe2, with the bridge in its place; the same as "
        "python -m bridge.caffe2. Arguments after the script are the script's own.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("--force", action="store_true", help="even if caffe2 was imported already")
    parser.add_argument("-m", metavar="MODULE", help="run a module")
    parser.add_argument("script", nargs="?", help="the script")
    parser.add_argument("arguments", nargs="...", help="its arguments")
    parser.set_defaults(run=_refuse)


def _refuse(_: argparse.Namespace) -> int:
    raise UsageError("a script or -m MODULE is required (see bridge caffe2 run --help)")


def run_directly(given: list[str]) -> int | None:
    """Run a script with the arguments as they are, which argparse would take for its own.

    Return None if they ask for help, or have no script.
    """
    if given[:1] == ["--debug"]:
        given = given[1:]
    if not given or given[0] in ("-h", "--help"):
        return None
    from bridge.caffe2.__main__ import main

    return main(given, "bridge caffe2 run: ")
