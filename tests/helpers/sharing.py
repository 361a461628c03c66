# SPDX-License-Identifier: Apache-2.0
"""What tests of shared memory run in other processes, and how they look for what is left."""

from __future__ import annotations

import contextlib
import gc
import glob
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.isolate import TIME_LIMIT_S, _environment

PREFIX = "bridge"  # of the names of memfds


def descriptors(pid: int | str = "self") -> list[str]:
    """Return what the descriptors of segments of a process refer to."""
    found = []
    for entry in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
        except OSError:
            continue  # that of the listing itself
        if target.startswith(f"/memfd:{PREFIX}"):
            found.append(target)
    return sorted(found)


def mappings(pid: int | str = "self") -> list[str]:
    """Return the lines of the mappings of segments of a process."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [line for line in lines if f"/memfd:{PREFIX}" in line]


def names() -> list[str]:
    """Return the names of segments that there are."""
    return sorted(glob.glob("/tmp/bridge-names-*/t-*") + glob.glob("/dev/shm/*bridge*"))


def remove_names() -> None:
    """Remove the names that a test left which was killed."""
    for path in names():
        os.unlink(path)


def left_behind() -> tuple[int, int, list[str]]:
    """Return descriptors and mappings of this process, and all names, after a collection."""
    gc.collect()
    return len(descriptors()), len(mappings()), names()


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Start an unrelated interpreter that runs `code`."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str], may_complain: bool = False) -> str:
    """Return what the process printed. Fails unless it ended well, without a word of complaint."""
    out, complaint = process.communicate(timeout=TIME_LIMIT_S)
    assert process.returncode == 0, f"{process.returncode}\n{out}{complaint}"
    assert may_complain or not complaint, complaint
    return out


def printed(code: str, *arguments: str) -> str:
    """Return what an unrelated interpreter prints that runs `code`."""
    return ended(python(code, *arguments))


def line_of(process: subprocess.Popen[str]) -> str:
    """Return the next line that the process prints."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate(timeout=TIME_LIMIT_S)
    return line.rstrip("\n")


def inode_of(path: str) -> int:
    return os.stat(path).st_ino


def users_of(inode: int) -> list[int]:
    """Return the processes that have a segment open or mapped."""
    return sorted(int(pid) for pid in os.listdir("/proc") if pid.isdigit() and _uses(pid, inode))


def _uses(pid: str, inode: int) -> bool:
    try:
        maps = Path(f"/proc/{pid}/maps").read_text()
        entries = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False  # it has ended
    if re.search(rf" {inode} +/memfd:{PREFIX}", maps):
        return True
    for entry in entries:
        with contextlib.suppress(OSError):
            found = os.stat(f"/proc/{pid}/fd/{entry}")
            target = os.readlink(f"/proc/{pid}/fd/{entry}")
            if found.st_ino == inode and target.startswith(f"/memfd:{PREFIX}"):
                return True
    return False


# What runs in processes of multiprocessing.


def tell(queue: Any, given: Any) -> None:
    """Put what `given` is into the queue: its values, whether it is read-only, its layout."""
    queue.put(seen(given))


def seen(given: Any) -> Any:
    """Return what can be told of a value without tensors."""
    if hasattr(given, "close"):
        return ("Shared", given.name, given.nbytes, seen(given.value))
    if isinstance(given, dict):
        return {key: seen(value) for key, value in given.items()}
    if isinstance(given, (list, tuple)):
        return [seen(value) for value in given]
    if hasattr(given, "storage_offset"):
        layout = [*given.sizes()], [*given.strides()], given.storage_offset()
        return given.tolist(), layout, given.readonly
    if hasattr(given, "sizes"):
        return given.numpy().tolist(), type(given).__module__
    return given


def echo(requests: Any, answers: Any) -> None:
    """Send back what comes, until it is None."""
    while (given := requests.get()) is not None:
        answers.put(given)
        del given


def fill(given: Any, value: float, answers: Any) -> None:
    """Write into a tensor or a Shared; answer with how that went."""
    try:
        (given.value if hasattr(given, "close") else given).fill_(value)
        answers.put("written")
    except Exception as error:  # noqa: BLE001  which one is what the test asks
        answers.put(type(error).__name__)


def make(values: list[float]) -> Any:
    """Return a new Shared."""
    import numpy as np

    import bridge

    return bridge.share(np.asarray(values))


def total(given: Any) -> float:
    """Return the sum of a tensor or a Shared."""
    tensor = given.value if hasattr(given, "close") else given
    return float(tensor.numpy().sum())


def outlive(shared: Any, tensor: Any) -> None:
    """Wait until the parent has ended, then print the values."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join(TIME_LIMIT_S)
    print(shared.value.tolist(), tensor.tolist(), flush=True)


def wait_with(*given: Any) -> None:
    """Keep what is given until this process is killed."""
    import time

    time.sleep(TIME_LIMIT_S)
    del given
