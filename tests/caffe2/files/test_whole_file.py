# SPDX-License-Identifier: Apache-2.0
"""A Save that does not come to its end, for real: killed, or with no room for more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bridge.caffe2 import load_checkpoint, save_checkpoint, workspace
from tests.helpers.isolate import run_python

pytestmark = pytest.mark.usefixtures("fresh_workspace")

# Saves 8 MB, a million elements at a time, to a file of this size at most.
NO_ROOM = """
import resource, sys
import numpy as np
from bridge.caffe2 import core, workspace
workspace.FeedBlob("x", np.ones(2_000_000, np.float32))
resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000))
try:
    workspace.RunOperatorOnce(core.CreateOperator(
        "Save", ["x"], [], db=sys.argv[1], db_type="minidb", absolute_path=1))
except RuntimeError as error:
    print(error)
"""
# Says when the first blob is written and the second is next.
SLOW = """
import sys, time
import numpy as np
from bridge.caffe2 import workspace
from bridge.caffe2.files import minidb
from bridge.caffe2 import save_checkpoint
put = minidb.MiniDBWriter.put
def slow_put(self, key, value):
    if key == b"y#%0":
        self._whole.file.flush()
        print("half", flush=True)
        time.sleep(600)
    put(self, key, value)
minidb.MiniDBWriter.put = slow_put
workspace.FeedBlob("x", np.ones(1000, np.float32))
workspace.FeedBlob("y", np.ones(1000, np.float32))
save_checkpoint(sys.argv[1], ["x", "y"])
"""


def old_file(folder: Path) -> Path:
    workspace.FeedBlob("old", np.float32([1, 2, 3]))
    save_checkpoint(str(folder / "model"), ["old"])
    workspace.ResetWorkspace()
    return folder / "model"


def check_old(path: Path) -> None:
    assert load_checkpoint(str(path)) == ["old"]
    assert workspace.FetchBlob("old").tolist() == [1, 2, 3]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = old_file(tmp_path)
    printed = run_python(NO_ROOM, str(path))
    assert "File too large" in printed
    assert "is unchanged" in printed
    assert os.listdir(tmp_path) == ["model"]
    check_old(path)


def test_a_save_that_is_killed_leaves_the_old_file(tmp_path: Path) -> None:
    path = old_file(tmp_path)
    root = str(Path(__file__).parents[3])
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, *filter(None, sys.path)])},
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        process.kill()
    (left,) = set(os.listdir(tmp_path)) - {"model"}
    assert left.startswith(".") and left.endswith(".tmp")
    assert (tmp_path / left).stat().st_size > 4000
    check_old(path)
