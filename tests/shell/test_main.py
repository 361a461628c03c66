# SPDX-License-Identifier: Apache-2.0
"""The command: exit statuses, errors in one line, help, closed pipes and Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from shutil import copyfile

import pytest

from bridge.shell.main import main
from bridge.shell.text_tables import Progress, nbytes_text
from tests.helpers.isolate import run_python
from tests.helpers.shell import bridge, bridge_on_terminal, environment

CHECKPOINT = str(Path(__file__).parent.parent / "golden" / "checkpoint.minidb")
COMMANDS = [
    ["doctor"],
    ["caffe2", "inspect"],
    ["caffe2", "draw"],
    ["caffe2", "convert"],
    ["caffe2", "run"],
]


@pytest.mark.parametrize("command", [[], ["caffe2"], *COMMANDS], ids=" ".join)
def test_help_has_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "--help"]) == 0
    said = capsys.readouterr()
    assert "usage: " in said.out
    assert "examples:\n  bridge " in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["--nothing"],
        ["caffe2", "nothing"],
        ["caffe2", "inspect"],
        ["caffe2", "convert", "x.minidb"],
        ["caffe2", "convert", "x.minidb", "-o", "x.nothing"],
        ["caffe2", "convert", "x.pb", "-o", "x.pt2", "--input", "data=1,a"],
        ["caffe2", "convert", "x.pb", "-o", "x.pt2", "--input", "a=1", "--input", "a=2"],
        ["caffe2", "convert", CHECKPOINT, "-o", "x.npz", "--input", "a=1"],
        ["caffe2", "draw", "x.pb", "-o", "x.png"],
        ["caffe2", "run"],
        ["doctor", "nothing"],
        ["doctor", "--timeout", "-1"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_line_and_status_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("bridge")


@pytest.mark.parametrize("command", [["inspect"], ["convert", "-o", "x.npz"]], ids=" ".join)
@pytest.mark.parametrize("path", ["nothing", "/dev/null", "/proc/self/mem", "."])
def test_files_that_cannot_be_read_are_named_in_one_line(
    command: list[str], path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["caffe2", *command, path]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert repr(path) in said.err
    assert not os.path.exists("x.npz")


def test_debug_gives_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="cannot be read"):
        main(["caffe2", "inspect", "nothing", "--debug"])
    with pytest.raises(RuntimeError, match="cannot be read"):
        main(["--debug", "caffe2", "inspect", "nothing"])
    done = bridge("caffe2", "inspect", "nothing", "--debug")
    assert done.status == 1
    assert "Traceback" in done.err


def test_it_runs_as_a_module_and_is_light() -> None:
    done = bridge("--version")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("bridge ")
    code = "import sys, bridge.shell.main; print({'numpy', 'torch', 'rich'} & set(sys.modules))"
    assert run_python(code) == "set()\n"


def test_a_closed_pipe_ends_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "bridge", "caffe2", "inspect", CHECKPOINT]
    done = subprocess.run(
        command, stdout=writing, stderr=subprocess.PIPE, env=environment(), check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_a_full_disk_under_the_output_is_one_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "bridge", "caffe2", "inspect", CHECKPOINT]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False
        )
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert done.stderr.startswith("bridge: ")


def test_a_terminal_shows_tables() -> None:
    status, shown = bridge_on_terminal("caffe2", "inspect", CHECKPOINT)
    assert status == 0
    assert "conv/w" in shown
    assert "4 x 3 x 3 x 5" in shown


def test_tables_without_rich_have_no_colour() -> None:
    hidden = "sys.modules['rich'] = None"
    status, shown = bridge_on_terminal("caffe2", "inspect", CHECKPOINT, code=hidden)
    assert status == 0
    assert "4 x 3 x 3 x 5" in shown
    assert "\x1b" not in shown


def test_a_terminal_shows_errors_in_one_line() -> None:
    status, shown = bridge_on_terminal("caffe2", "inspect", "nothing")
    assert status == 1
    assert shown.strip().count("\n") == 0


def test_sizes_are_printed_in_binary_units() -> None:
    assert [nbytes_text(n) for n in (0, 1023, 1536, 3 << 30, 5 << 40)] == [
        *("0 B", "1023 B", "1.5 KiB", "3.0 GiB", "5.0 TiB"),
    ]


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("x") as progress:
        progress(1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("command", [[], ["caffe2"]], ids=["bridge", "bridge caffe2"])
def test_without_a_command_the_help_is_printed(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    said = capsys.readouterr()
    assert "examples:\n  bridge " in said.out
    assert said.err == ""


def test_a_closed_output_is_an_error_in_one_line() -> None:
    done = shell(f"{sys.executable} -m bridge caffe2 inspect {CHECKPOINT} >&-")
    assert (done.returncode, done.stderr) == (1, b"bridge: the output is closed\n")


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_names_of_files_may_be_any_bytes_in_any_locale(locale: str, tmp_path: Path) -> None:
    """Python's UTF-8 mode, which the locale C turns on, is off."""
    name = "n\u00ebt.minidb".encode()
    copyfile(CHECKPOINT, os.fsencode(tmp_path) + b"/" + name)
    start = f"LC_ALL={locale} PYTHONUTF8=0 {sys.executable} -m bridge caffe2"
    done = shell(f"cd {tmp_path}; {start} inspect n\u00ebt.minidb")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(name)
    done = shell(f"cd {tmp_path}; {start} inspect x\u00ebx")
    assert done.returncode == 1
    assert "'x\u00ebx' cannot be read".encode() in done.stderr


def shell(command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line in a shell."""
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, env=environment(), check=False, timeout=120
    )


def test_no_color_removes_bold_too() -> None:
    status, shown = bridge_on_terminal(
        "caffe2", "inspect", CHECKPOINT, code="import os\nos.environ['NO_COLOR'] = '1'"
    )
    assert status == 0
    assert "\x1b" not in shown
