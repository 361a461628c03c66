# SPDX-License-Identifier: Apache-2.0
"""bridge caffe2 run: the same as python -m bridge.caffe2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.shell import bridge

SCRIPT = """
import sys
from caffe2.python import workspace
print(sys.argv[1:], workspace.__name__)
if "fail" in sys.argv:
    raise ValueError("the script's own")
if "interrupt" in sys.argv:
    raise KeyboardInterrupt
"""


def test_a_script_has_its_own_arguments(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = bridge("caffe2", "run", str(path), "--help", "--debug", "-o", "x")
    assert (done.status, done.err) == (0, "")
    assert done.out == "['--help', '--debug', '-o', 'x'] bridge.caffe2.script_workspace\n"
    assert bridge("caffe2", "run", str(path), "interrupt").status == 130


def test_its_errors_are_its_own(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = bridge("caffe2", "run", str(tmp_path / "script.py"), "fail")
    assert done.status == 1
    assert "Traceback" in done.err
    assert "the script's own" in done.err
    assert bridge("caffe2", "run", str(tmp_path / "none.py")).status == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["nosuch.py"], "bridge caffe2 run: There is no script 'nosuch.py'.\n"),
        (["-m", "nosuch.module"], "bridge caffe2 run: There is no module 'nosuch.module'.\n"),
    ],
)
def test_a_missing_script_is_wrong_use(given: list[str], said: str) -> None:
    assert bridge("caffe2", "run", *given) == (2, "", said)
