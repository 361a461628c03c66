# SPDX-License-Identifier: Apache-2.0
"""The findings of `bridge doctor`: frameworks, their versions and faults, and the conversions."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from importlib import metadata

import bridge.libraries
from bridge._version import __version__
from bridge.annotation import Any
from bridge.exchange.registry import exporting_names
from bridge.exchange.torch_versions import lacking
from bridge.shell import probe
from bridge.shell.usage_errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Outcome = dict[str, Any]

Task = tuple[str, ...]
# The parts that are always there, and the framework that is compiled into the bridge.
_OWN = ("at", "caffe2")
_STEP = 0.02  # seconds between two looks at a child's report
_LAST_LINES = 300  # characters of a crashed child's stderr that are shown


def diagnose(wanted: Sequence[str], timeout: float) -> dict[str, Any]:
    """Return the versions, frameworks and conversions as plain Python objects, fit for JSON.

    wanted: names of frameworks; empty: all that are installed. timeout: seconds for each step.
    Raises UsageError: a name is unknown.
    """
    known = [*_OWN, *dict.fromkeys(["numpy", "torch", *exporting_names()])]
    for name in wanted:
        if name not in known:
            raise UsageError(f"no framework has the name {name!r}; known are {', '.join(known)}")
    names = [name for name in known if not wanted or name in wanted]
    there = [name for name in names if name in _OWN or _is_installed(name)]
    imports, conversions = _outcomes(there, timeout)
    frameworks = [
        {
            "name": name,
            "version": (version := imports[name].get("version") or _version(name)),
            "reason": imports[name].get("reason"),
            "lacks": lacking(version) if name == "torch" and version else {},
        }
        for name in there
    ]
    rows = [
        {
            "source": source,
            "target": target,
            "result": done.get("result", "error"),
            "seconds": done.get("seconds"),
            "reason": done.get("reason"),
        }
        for (source, target), done in conversions.items()
    ]
    return {
        "bridge": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "frameworks": frameworks,
        "missing": [name for name in names if name not in there],
        "conversions": rows,
        "processes": shared_memory(),
        "ok": not any(one["reason"] for one in frameworks)
        and not any(one["result"] == "error" for one in rows),
    }


def shared_memory() -> dict[str, Any]:
    """Return the outcome of sharing a tensor and attaching it by its name, by JSON's types.

    ``{"result": "ok" | "error", "reason": None | text}``. Nothing is left behind.
    """
    try:
        name = f"bridge-doctor-{os.getpid()}"
        with bridge.share(bytearray(b"doctor"), name=name) as shared:
            for source in (name, shared.path):
                if bytes(bridge.attach(source)) != b"doctor":
                    return {"result": "error", "reason": "other bytes came back"}
    except (OSError, MemoryError, BufferError, ImportError) as error:
        return {"result": "error", "reason": f"{type(error).__name__}: {error}"}
    return {"result": "ok", "reason": None}


def _is_installed(name: str) -> bool:
    """Return whether a package is there to be imported, without importing it."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return True  # it is there, and broken; the child will say how
    return spec is not None and spec.loader is not None


def _version(name: str) -> str | None:
    """Return the version by the metadata of the distribution, for a framework without its own."""
    if name in _OWN:
        return __version__
    for distribution in metadata.packages_distributions().get(name, ()):
        return metadata.version(distribution)
    return None


def _outcomes(
    names: Sequence[str], timeout: float
) -> tuple[dict[str, Outcome], dict[tuple[str, str], Outcome]]:
    """Return the outcome of each import and, between the imported frameworks, of each conversion.

    One child does all of it, unless it crashes or hangs: then another one does the rest.
    """
    imports: dict[str, Outcome] = {}
    conversions: dict[tuple[str, str], Outcome] = {}
    while True:
        healthy = [name for name in names if imports.get(name, {}).get("result") != "error"]
        left = [(x, y) for x in healthy for y in healthy if (x, y) not in conversions]
        if not left and len(imports) == len(names):
            # A framework may have failed only in a later child.
            kept = {pair: one for pair, one in conversions.items() if set(pair) <= set(healthy)}
            return imports, kept
        before = len(healthy) - len(imports), len(conversions)
        tasks = [("import", name) for name in healthy]
        for task, done in _run_child([*tasks, *(("convert", *pair) for pair in left)], timeout):
            if task[0] == "import":
                imports[task[1]] = done
            else:
                conversions[task[1], task[2]] = done
        healthy = [name for name in names if imports.get(name, {}).get("result") != "error"]
        if (len(healthy) - len(imports), len(conversions)) == before:
            nothing = _error("the process that measures it ended without a word")
            imports.update((name, nothing) for name in names if name not in imports)
            conversions.update((pair, nothing) for pair in left if pair not in conversions)


def _run_child(tasks: Sequence[Task], timeout: float) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Yield each task that a child has done and its outcome; the last may have ended the child."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = os.path.join(folder, "report")
        command = [sys.executable, "-m", probe.__name__, path, json.dumps(tasks)]
        # Frameworks print freely; the text that a crash leaves on stderr may be the reason.
        with (
            open(path, "w+b") as report,
            open(os.path.join(folder, "stderr"), "w+b") as stderr,
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr
            ) as child,
        ):
            begun: Task | None = None
            rest, said = b"", 0
            deadline = time.monotonic() + timeout
            try:
                ended = False
                while not ended:
                    ended = child.poll() is not None  # what it wrote before that is read below
                    *lines, rest = (rest + report.read()).split(b"\n")
                    for line in lines:
                        deadline = time.monotonic() + timeout
                        message = json.loads(line)
                        task = tuple(message.pop("task"))
                        if "said" in message:
                            begun, said = task, message["said"]
                        else:
                            begun = None
                            yield task, message
                    if not ended and time.monotonic() > deadline:
                        if begun is not None:
                            yield begun, _error(f"it did not end within {timeout:g} seconds")
                        return
                    time.sleep(_STEP)
                if begun is not None:
                    stderr.seek(said)
                    yield begun, _error(_how_it_ended(child.returncode, stderr.read()))
            finally:
                if child.poll() is None:
                    child.kill()


def _error(reason: str) -> dict[str, Any]:
    return {"result": "error", "reason": reason}


def _how_it_ended(status: int, said: bytes) -> str:
    if status < 0:
        try:
            how = f"it crashed: {signal.Signals(-status).name}"
        except ValueError:
            how = f"it crashed: signal {-status}"
    else:
        how = f"it ended the process with status {status}"
    lines = said.decode(errors="replace").strip().splitlines()
    return " ".join(f"{how}; {lines[-1][:_LAST_LINES]}".split()) if lines else how
