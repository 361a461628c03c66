# SPDX-License-Identifier: Apache-2.0
"""The command ``bridge`` in a process of its own: in a pipe, or in a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import NamedTuple

TIMEOUT = 300  # seconds


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a command, in which this bridge is imported."""
    path = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "TERM": "xterm", "COLUMNS": "200", **more}


def bridge(*arguments: str, **more: str) -> Done:
    """Run ``bridge`` with arguments, and more variables in its environment."""
    done = subprocess.run(
        [sys.executable, "-m", "bridge", *arguments],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        env=environment(**more),
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def bridge_on_terminal(*arguments: str, code: str = "") -> tuple[int, str]:
    """Run ``bridge`` in a pseudo-terminal; return the exit status and what was shown.

    code: Python that the process runs first.
    """
    program = f"import sys\nfrom bridge.shell.main import main\n{code}\nsys.exit(main())"
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment(),
        start_new_session=True,
    ) as process:
        os.close(slave)
        shown = b""
        while True:
            try:
                data = os.read(master, 1 << 16)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            shown += data
        status = process.wait(TIMEOUT)
    os.close(master)
    return status, shown.decode(errors="replace")
