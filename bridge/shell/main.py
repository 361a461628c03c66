# SPDX-License-Identifier: Apache-2.0
"""The command ``bridge``: arguments, exit statuses, and errors in one line.

Exit statuses: 0, done; 1, it failed, or ``doctor`` found something wrong; 2, wrong use; 130,
Ctrl-C.
Arguments are read by argparse, which is there with each Python: ``python -m bridge`` works wherever
``import bridge`` does. Tables and progress on a terminal are drawn by rich, if it is installed.
"""

from __future__ import annotations

import argparse
import codecs
import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from bridge._version import __version__
from bridge.shell import conform, convert, doctor, draw, inspect, script
from bridge.shell.usage_errors import UsageError, one_line

_EXAMPLES = """\
examples:
  bridge doctor
  bridge conform torch
  bridge caffe2 inspect predict_net.pb init_net.pb
  bridge caffe2 convert model.minidb -o model.safetensors
"""
_CAFFE2_EXAMPLES = """\
examples:
  bridge caffe2 inspect predict_net.pb
  bridge caffe2 draw predict_net.pb -o net.svg
  bridge caffe2 convert predict_net.pb --init-net init_net.pb -o model/ --input data=1,3,224,224
  bridge caffe2 run train.py --epochs 3
"""


class _Parser(argparse.ArgumentParser):
    """A parser, also of each command, whose errors are one line."""

    def __init__(self, **options: Any) -> None:
        # examples keep their lines
        form = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=form, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {' '.join(message.split())} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="bridge", description="One tensor for all frameworks.", epilog=_EXAMPLES)
    parser.add_argument("--version", action="version", version=f"bridge {__version__}")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    doctor.add_to(commands)
    conform.add_to(commands)
    caffe2 = commands.add_parser(
        "caffe2",
        help="read, draw, convert and run what was made with Caffe2",
        description="Read, draw, convert and run what was made with Caffe2.",
        epilog=_CAFFE2_EXAMPLES,
    )
    caffe2_commands = caffe2.add_subparsers(dest="caffe2_command", metavar="COMMAND", required=True)
    for module in (inspect, draw, convert, script):
        module.add_to(caffe2_commands)
    _add_debug(parser)
    return parser


def _add_debug(parser: argparse.ArgumentParser) -> None:
    """Add the option --debug to all commands below, so that it may stand anywhere."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):
                below.add_argument(
                    "--debug",
                    action="store_true",
                    default=argparse.SUPPRESS,
                    help="show the traceback of an error",
                )
                _add_debug(below)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments specify; return the exit status.

    arguments: by default the arguments of the process. Errors are one line on stderr.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    _prepare_streams()
    try:
        if given[:2] == ["caffe2", "run"]:
            status = script.run_directly(given[2:])
            if status is not None:
                return status
    except KeyboardInterrupt:
        return 130  # any other error is the script's own, and shown as Python shows it
    try:
        if given in ([], ["caffe2"]):
            _run([*given, "--help"])
            status = 2
        else:
            status = _run(given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        if debug:
            raise
        return 130
    except BrokenPipeError:
        if debug:
            raise
        # The rest in the buffer has no reader: flushing it at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except UsageError as error:
        return _fail(error, debug, 2)
    except Exception as error:  # noqa: BLE001  whatever it is, the user gets one line
        return _fail(error, debug, 1)
    return status


class _Closed(io.TextIOBase):
    """Stands for a stream that was closed before the command began, which Python has as None."""

    def write(self, _: str) -> int:
        raise OSError(errno.EBADF, "the output is closed")


# The error handlers that Python sets for the standard streams by itself.
_ERRORS = ("strict", "surrogateescape", "backslashreplace")


def _prepare_streams() -> None:
    """Let the output take names of files that the locale cannot encode, as the bytes they are."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # The next file that is opened would have its number.
            os.open(os.devnull, os.O_WRONLY)
            setattr(sys, name, _Closed())
        elif hasattr(stream, "reconfigure") and stream.errors in _ERRORS:
            plain = codecs.lookup(stream.encoding).name == "ascii"
            stream.reconfigure(
                encoding="utf-8" if plain else stream.encoding, errors="surrogateescape"
            )


def _run(given: list[str]) -> int:
    try:
        parsed = _parser().parse_args(given)
    except SystemExit as done:  # after --help, or wrong use
        return int(done.code or 0)
    status = parsed.run(parsed)
    assert isinstance(status, int)
    return status


def _fail(error: Exception, debug: bool, status: int) -> int:
    if debug:
        raise error
    try:
        print(f"bridge: {one_line(error)}", file=sys.stderr)
    except OSError:
        return status  # stderr is closed, too
    return status
