# SPDX-License-Identifier: Apache-2.0
"""Names between users, PID namespaces, and processes that use the same PID."""

from __future__ import annotations

import glob
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import bridge
from bridge.shared.names import Place, find
from tests.helpers.isolate import _environment
from tests.helpers.sharing import printed

NOBODY = 65534
is_root = pytest.mark.skipif(os.geteuid() != 0, reason="it becomes another user")


def as_nobody(run: Callable[[], None]) -> int:
    """Run it in a forked child that is another user; return its exit status."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            run()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@is_root
def test_another_user_is_refused() -> None:
    with bridge.share(np.arange(3), name="t-mine") as shared:
        path = shared.path

        def run() -> None:
            shared.close()  # what the child had from its parent
            for source in ("t-mine", path):
                with pytest.raises(PermissionError):
                    bridge.attach(source)
            with pytest.raises(PermissionError):
                bridge.attach("t-mine", timeout=0.01)
            with pytest.raises(FileNotFoundError):
                bridge.attach("t-nobodys")

        assert as_nobody(run) == 0


@is_root
def test_root_is_refused_too() -> None:
    said, go = os.pipe(), os.pipe()

    def run() -> None:
        with bridge.share(np.arange(3), name="t-theirs") as shared:
            os.write(said[1], shared.path.encode())
            os.read(go[0], 1)

    child = os.fork()
    if child == 0:
        os._exit(0 if as_nobody(run) == 0 else 1)
    path = os.read(said[0], 1000).decode()
    try:
        for source in ("t-theirs", path):
            with pytest.raises(PermissionError):
                bridge.attach(source)
        with bridge.share(np.zeros(1), name="t-theirs"):  # each user has names of its own
            assert bridge.attach("t-theirs").tolist() == [0]
    finally:
        os.write(go[1], b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        for fd in (*said, *go):
            os.close(fd)


def has_namespaces() -> bool:
    unshare = shutil.which("unshare")
    return unshare is not None and subprocess.run(
        [unshare, "--pid", "--fork", "true"], capture_output=True, check=False
    ).returncode == 0  # fmt: skip


@pytest.mark.skipif(not has_namespaces(), reason="no new PID namespace may be made here")
@pytest.mark.parametrize("options", [["--mount-proc"], []])
def test_a_name_of_another_pid_namespace_is_not_there(options: list[str]) -> None:
    code = """
import bridge
try:
    bridge.attach("t-outside")
except FileNotFoundError:
    print("not there")
with bridge.share(bridge.at.zeros(2), name="t-outside"):
    print(bridge.attach("t-outside").tolist())
"""
    with bridge.share(np.arange(3), name="t-outside"):
        done = subprocess.run(
            ["unshare", "--pid", "--fork", *options, sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
        )
        assert done.stdout == "not there\n[0.0, 0.0]\n", done.stderr
        assert bridge.attach("t-outside").tolist() == [0, 1, 2]


def link_of(name: str) -> Path:
    (found,) = glob.glob(f"/tmp/bridge-names-{os.geteuid()}.*/{name}")  # the link may dangle
    return Path(found)


def test_a_pid_that_is_used_again_is_not_taken_for_the_maker() -> None:
    with bridge.share(np.arange(3), name="t-reused") as shared:
        place = find("t-reused")
        assert place.path == shared.path
        other = bridge.share(np.zeros(5))
        fd = other.path
        stale = {
            "another file": Place(fd, place.file, place.token),
            "another segment with the number of the file": Place(fd, find_file(fd), place.token),
            "no segment": Place("/proc/self/fd/0", place.file, place.token),
            "nobody": Place("/proc/999999999/fd/3", place.file, place.token),
        }
        texts = [one.text() for one in stale.values()] + ["nonsense", "/proc/1/fd/1?x.y.z", "?"]
        shared.close()
        for text in texts:
            link = link_of_new("t-reused", text)
            with pytest.raises(FileNotFoundError):
                bridge.attach("t-reused")
            with bridge.share(np.ones(1), name="t-reused"):  # dead, so it can be used again
                assert bridge.attach("t-reused").tolist() == [1]
            assert not link.is_symlink()
        other.close()


def find_file(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def link_of_new(name: str, text: str) -> Path:
    """Make a link as a process left it that was killed."""
    with bridge.share(np.zeros(1), name=name):
        link = link_of(name)
    link.symlink_to(text)
    return link


def test_the_folder_is_private() -> None:
    with bridge.share(np.zeros(1), name="t-folder"):
        folder = link_of("t-folder").parent
        found = folder.lstat()
        assert stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        assert found.st_mode & 0o066 == 0, "others can neither list nor change it"


def test_names_do_not_depend_on_the_environment() -> None:
    with bridge.share(np.zeros(1), name="t-environment"):
        out = printed(
            "import os\nos.environ.update(HOME='/', TMPDIR='/nowhere', XDG_RUNTIME_DIR='/x',"
            " USER='x')\nimport bridge\nprint(bridge.attach('t-environment').shape)"
        )
        assert out == "(1,)\n"


def test_a_file_in_place_of_a_link_is_left_alone() -> None:
    with bridge.share(np.zeros(1), name="t-file"):
        link = link_of("t-file")
    link.write_text("precious")
    try:
        with pytest.raises(FileExistsError):
            bridge.share(np.zeros(1), name="t-file")
        with pytest.raises(FileNotFoundError):
            bridge.attach("t-file")
        assert link.read_text() == "precious"
    finally:
        link.unlink()
