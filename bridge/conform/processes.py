# SPDX-License-Identifier: Apache-2.0
"""Asks a fresh Python process, which imports libraries, and returns its answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from bridge.annotation import Any


def ask(module: str, request: Any) -> Any:
    """Return the answer of ``python -m module DESCRIPTOR REQUEST``.

    Raises RuntimeError: the process ended without one, with the last line that it wrote.
    """
    reading, writing = os.pipe()
    command = [sys.executable, "-W", "ignore", "-m", module, str(writing), json.dumps(request)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[writing],
        env=environment,
    ) as child:
        os.close(writing)
        try:
            with open(reading, encoding="utf-8") as pipe:
                answer = pipe.read()
        finally:
            if sys.exc_info()[0] is not None:
                child.kill()
        status = child.wait()
    if not answer:
        raise RuntimeError(f"the process of {module} ended with status {status} without an answer")
    return json.loads(answer)
