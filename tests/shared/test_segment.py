# SPDX-License-Identifier: Apache-2.0
"""What the kernel keeps: sealed memory, one mapping, nothing that is no segment."""

from __future__ import annotations

import fcntl
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

import bridge
from bridge.shared.segment import create, find_segment, open_segment
from bridge.shared.tensors import segment_of
from tests.helpers.sharing import descriptors, printed

F_ADD_SEALS = 1033
SHRINK, GROW, WRITE, FUTURE_WRITE, SEAL = 2, 4, 8, 16, 1

ATTACK = """
import ctypes, fcntl, mmap, os, sys
import bridge
x = bridge.attach(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
page = x.data_ptr() & ~(mmap.PAGESIZE - 1)
print("mprotect", libc.mprotect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE))
fd = os.open(sys.argv[1], os.O_RDWR)
for attempt in (
    lambda: mmap.mmap(fd, 0),
    lambda: os.ftruncate(fd, 1),
    lambda: os.ftruncate(fd, 1 << 20),
    lambda: os.posix_fallocate(fd, 0, 1 << 20),
    lambda: os.write(fd, b"x"),
    lambda: os.open(sys.argv[1], os.O_RDWR | os.O_TRUNC),
    lambda: fcntl.fcntl(fd, 1033, 8),
):
    try:
        attempt()
        print("done")
    except OSError as error:
        print(type(error).__name__)
pid = os.fork()
if pid == 0:
    ctypes.memset(x.data_ptr(), 1, 1)
    os._exit(0)
print("signal", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_another_process_cannot_write_or_resize() -> None:
    with bridge.share(np.arange(4.0)) as shared:
        out = printed(ATTACK, shared.path)
        assert out.splitlines() == [
            "mprotect -1",
            *["PermissionError"] * 7,
            "signal -11",
        ]
        assert shared.value.tolist() == [0, 1, 2, 3]


def test_a_writable_segment_cannot_be_resized() -> None:
    with bridge.share(np.arange(4.0), writable=True) as shared:
        fd = os.open(shared.path, os.O_RDWR)
        try:
            for nbytes in (1, 1 << 20):
                with pytest.raises(PermissionError):
                    os.ftruncate(fd, nbytes)
            with pytest.raises(PermissionError):
                fcntl.fcntl(fd, F_ADD_SEALS, FUTURE_WRITE)
        finally:
            os.close(fd)


@contextmanager
def memfd(data: bytes, seals: int) -> Iterator[str]:
    fd = os.memfd_create("foreign", os.MFD_ALLOW_SEALING)
    try:
        os.write(fd, data)
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
        yield f"/proc/self/fd/{fd}"
    finally:
        os.close(fd)


def file_of(shared: bridge.Shared) -> bytes:
    with open(shared.path, "rb") as file:
        return file.read()


def test_files_that_are_not_segments_are_refused(tmp_path: os.PathLike[str]) -> None:
    regular = os.path.join(tmp_path, "regular")
    pipe = os.path.join(tmp_path, "pipe")
    os.mkfifo(pipe)
    with bridge.share(np.arange(4.0)) as shared:
        data = file_of(shared)
        with open(regular, "wb") as file:
            file.write(data)
        for path in (regular, pipe, str(tmp_path), "/dev/null"):
            with pytest.raises(BufferError):
                bridge.attach(path)
        for seals in (0, SHRINK, GROW, SHRINK | GROW, SHRINK | GROW | WRITE | SEAL):
            sealed = seals & (SHRINK | GROW) == SHRINK | GROW
            with memfd(data, seals) as path:
                if sealed and seals & WRITE:  # as good as what the bridge makes
                    assert bridge.attach(path).tolist() == [0, 1, 2, 3]
                    continue
                with pytest.raises(BufferError):
                    bridge.attach(path)
        with pytest.raises(FileNotFoundError):
            bridge.attach(os.path.join(tmp_path, "nothing"))
    for path in ("/proc/self/fd/999999", "/proc/999999999/fd/3", shared.path + "/x"):
        with pytest.raises(FileNotFoundError):
            bridge.attach(path)


def test_damaged_bytes_are_found_and_nothing_in_them_is_executed() -> None:
    ran: list[int] = []
    with bridge.share({"a": np.arange(3), "b": ["text", 2.5, {"c": np.ones(2)}]}) as shared:
        data = file_of(shared)
        first = (
            shared.value["a"].data_ptr()
            - segment_of(shared.value["a"].unsafeGetTensorImpl()).address
        )  # type: ignore[union-attr]
    rng = random.Random(3)
    for i in range(600):
        damaged = bytearray(data)
        if i % 3 == 0:
            damaged = damaged[: rng.randrange(1, len(data))]
        elif i % 3 == 1:
            damaged += bytes(rng.randrange(1, 100))
        else:
            at = rng.randrange(first)
            damaged[at] ^= 1 << rng.randrange(8)
        with (
            memfd(bytes(damaged), SHRINK | GROW | FUTURE_WRITE) as path,
            pytest.raises(BufferError, match="segment"),
        ):
            bridge.attach(path)
    for foreign in (b"x", b"{}", bytes(8), bytes(1000), b"\xff" * 1000):
        with memfd(foreign, SHRINK | GROW | FUTURE_WRITE) as path, pytest.raises(BufferError):
            bridge.attach(path)
    assert ran == [] and descriptors() == []


def test_a_segment_is_found_by_its_file_and_its_addresses() -> None:
    one = create(10_000)
    other = create(100)
    assert find_segment(one.file).address == one.address  # type: ignore[union-attr]
    assert find_segment((0, 0)) is None
    one.write(64, b"abc")
    assert one.read(64, 3) == b"abc"
    with pytest.raises(BufferError):
        one.read(9_999, 2)
    with pytest.raises(BufferError):
        other.write(99, b"ab")
    other.seal(False)
    path = f"/proc/self/fd/{other.fd}"
    assert open_segment(path, other.file).address == other.address
    with pytest.raises(FileNotFoundError):
        open_segment(path, one.file)


def test_a_descriptor_that_was_closed_behind_its_back_closes_no_other_file() -> None:
    shared = bridge.share(np.arange(3))
    x = shared.value
    fd = int(shared.path.rpartition("/")[2])
    os.close(fd)
    replaced = os.open("/dev/null", os.O_RDONLY)
    assert replaced == fd
    shared.close()
    assert x.tolist() == [0, 1, 2]
    del x
    os.fstat(replaced)
    os.close(replaced)
