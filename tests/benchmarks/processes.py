# SPDX-License-Identifier: Apache-2.0
"""Sharing between processes over the calls that it cannot do without, and over its peers."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import torch

import bridge
from tests.benchmarks.harness import Case, Effort, Row, loop, measured

F_ADD_SEALS, F_GET_SEALS, SEALS = 1033, 1034, 1 | 2 | 4 | 16
LEAVES = 300

MAKER = """
import sys
import numpy as np
import bridge
from multiprocessing.shared_memory import SharedMemory
names, huge, leaves = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
small = bridge.share(np.zeros(1024, "float32"), name=names + "small")
large = bridge.Shared.empty(((huge,), "uint8"), name=names + "large", writable=False)
tree = bridge.share([np.full(16, i, "float32") for i in range(leaves)], name=names + "tree")
block = SharedMemory(create=True, size=4096)
print(small.path, block.name, flush=True)
sys.stdin.readline()
block.close()
block.unlink()
"""


@contextlib.contextmanager
def maker(names: str, effort: Effort) -> Iterator[tuple[str, str]]:
    """Run another process that shares; give the path of its small segment, its block's name."""
    process = subprocess.Popen(
        [sys.executable, "-c", MAKER, names, str(effort.huge), str(LEAVES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    path, block = process.stdout.readline().split()
    try:
        yield path, block
    finally:
        process.communicate("end\n")


def by_hand(path: str) -> None:
    """Do what attaching cannot do without."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    fcntl.fcntl(fd, F_GET_SEALS)
    mmap.mmap(fd, 0, prot=mmap.PROT_READ).close()
    os.close(fd)


def shared_by_hand(view: memoryview) -> None:
    """Do what sharing cannot do without."""
    fd = os.memfd_create("by hand", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, len(view))
    memory = mmap.mmap(fd, len(view))
    done = 0
    while done < len(view):
        done += os.pwrite(fd, view[done:], done)
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    memory.close()
    os.close(fd)


def opened(name: str) -> None:
    """Attach a block of the standard library, and let it go."""
    SharedMemory(name).close()


def made(data: memoryview) -> None:
    """Make a block of the standard library with these bytes, and remove it."""
    block = SharedMemory(create=True, size=len(data))
    block.buf[: len(data)] = data
    block.close()
    block.unlink()


def rows(effort: Effort) -> Iterator[Row]:
    """Yield the rows."""
    names = f"benchmark-{os.getpid()}-"
    with maker(names, effort) as (path, block):
        yield from measured(attaching(names, path, block), effort)
    yield from measured(sharing(effort), effort)
    yield from measured(sending(), effort)


def attaching(names: str, path: str, block: str) -> Iterator[Case]:
    """Give the cases of `attach`."""
    attach = bridge.attach
    small, large = (loop("attach(n)", attach=attach, n=names + n) for n in ("small", "large"))
    hand = loop("by_hand(p)", by_hand=by_hand, p=path)
    yield Case("`attach(name)`", "open, seals, mmap, munmap, close", 2.5, 2.0, small, hand)
    standard = loop("opened(n)", opened=opened, n=block)
    yield Case("`attach(name)`", "`SharedMemory(name)`", 3.0, 1.0, small, standard)
    yield Case("`attach(name)` of 1 GiB", "of 4 KiB", 1.3, 1.1, large, small)
    tree = loop("attach(n)", attach=attach, n=names + "tree")
    each = loop(f"for _ in range({LEAVES}): attach(n)", attach=attach, n=names + "small")
    yield Case(f"`attach(name)` of {LEAVES} leaves", f"{LEAVES} attaches", 0.1, 0.05, tree, each)


def sharing(effort: Effort) -> Iterator[Case]:
    """Give the cases of `share`."""
    large = np.ones(effort.huge >> 4, "uint8")
    tensor = torch.from_numpy(large)
    view = memoryview(large)
    ours = loop("share(x).close()", repeats=1, share=bridge.share, x=large)
    hand = loop("shared(v)", repeats=1, shared=shared_by_hand, v=view)
    yield Case("`share` of 64 MiB", "memfd, pwrite, mmap by hand", 1.15, 1.05, ours, hand)
    torchs = loop("t.clone().share_memory_()", repeats=1, t=tensor)
    yield Case("`share` of 64 MiB", "`t.clone().share_memory_()`", 1.0, 0.6, ours, torchs)
    small = np.ones(4096, "uint8")
    ours = loop("share(x).close()", share=bridge.share, x=small)
    standard = loop("made(v)", made=made, v=memoryview(small))
    yield Case("`share` of 4 KiB, and close", "`SharedMemory`, filled", 1.0, 0.7, ours, standard)


def sending() -> Iterator[Case]:
    """Give the cases of a queue."""
    queue = multiprocessing.get_context("fork").SimpleQueue()
    shared = bridge.share(np.zeros(1024, "float32"))
    tensor = torch.zeros(1024).share_memory_()
    ours = loop("put(x); get()", put=queue.put, get=queue.get, x=shared.value)
    torchs = loop("put(t); get()", put=queue.put, get=queue.get, t=tensor)
    yield Case("a tensor through a queue", "torch's", 1.0, 0.5, ours, torchs)
    with bridge.share(shared.value, name=f"benchmark-{os.getpid()}"):
        attach = loop("attach(n)", attach=bridge.attach, n=f"benchmark-{os.getpid()}")
        yield Case("`attach(name)`", "torch's tensor through a queue", 0.2, 0.1, attach, torchs)
