# SPDX-License-Identifier: Apache-2.0
"""Run a script that imports Caffe2 with the bridge in its place.

``python -m bridge.caffe2 [--force] [--legacy PATH] script.py arguments...``, or ``-m module
arguments...`` in place of the script. PATH is an old PyTorch, for the modules that the bridge
lacks; see `bridge.caffe2.install`.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib.util import find_spec

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.install import install

_USAGE = (
    "usage: python -m bridge.caffe2 [--force] [--legacy PATH] (script.py | -m module) "
    "[argument ...]"
)


def main(arguments: list[str], prefix: str = "") -> int:
    """Install the bridge as caffe2, run a script or module as Python would; return an exit code.

    `prefix`: the begin of errors about the arguments.
    """
    rest = list(arguments)
    force, legacy = False, None
    while rest and rest[0].partition("=")[0] in ("--force", "--legacy"):
        option, _, value = rest.pop(0).partition("=")
        if option == "--force":
            force = True
        elif value or rest:
            legacy = value or rest.pop(0)
        else:
            print(f"{prefix}--legacy needs a path.\n{_USAGE}", file=sys.stderr)
            return 2
    is_module = rest[:1] == ["-m"]
    if is_module:
        del rest[0]
    if rest[:1] in (["-h"], ["--help"]):
        print(f"{_USAGE}\n\n{__doc__}")
        return 0
    if not rest:
        print(_USAGE, file=sys.stderr)
        return 2
    try:
        install(force=force, legacy=legacy)
    except EnforceNotMet as error:
        print(f"{prefix}{error.message.replace('install(force=True)', '--force')}", file=sys.stderr)
        return 1
    sys.argv[:] = rest
    # Python's option -P leaves the folder of the script out of sys.path.
    add_folder = not getattr(sys.flags, "safe_path", False)
    if is_module:
        if add_folder:
            sys.path[0] = os.getcwd()
        if not _is_found(rest[0]):
            print(f"{prefix}There is no module {rest[0]!r}.", file=sys.stderr)
            return 2
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(rest[0]):
        print(f"{prefix}There is no script {rest[0]!r}.", file=sys.stderr)
        return 2
    if add_folder:
        sys.path[0] = os.path.dirname(os.path.abspath(rest[0]))
    runpy.run_path(rest[0], run_name="__main__")
    return 0


def _is_found(module: str) -> bool:
    """Return whether a module can be found; the packages that it is in are imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return False
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
