# SPDX-License-Identifier: Apache-2.0
"""bridge caffe2 convert: targets by their names, progress, Ctrl-C, a full disk, permissions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from bridge.caffe2 import core
from bridge.shell.main import main
from tests.helpers.shell import bridge_on_terminal, environment

GOLDEN = Path(__file__).parents[1] / "golden"
CHECKPOINT = str(GOLDEN / "checkpoint.minidb")
PREDICTOR = str(GOLDEN / "predictor.mdl")


def convert(*arguments: str) -> int:
    return main(["caffe2", "convert", *arguments])


def nets(folder: Path) -> list[str]:
    """Write a net and its init net; return the arguments that convert them."""
    init, net = core.Net("init"), core.Net("net")
    init.ConstantFill([], "w", shape=[3, 4], value=0.5)
    init.ConstantFill([], "b", shape=[3])
    net.FC(["x", "w", "b"], "y")
    (folder / "init.pb").write_bytes(init.Proto().SerializeToString())
    (folder / "net.pbtxt").write_text(str(net.Proto()))
    return [str(folder / "net.pbtxt"), "--init-net", str(folder / "init.pb")]


@pytest.mark.parametrize("ending", ["npz", "safetensors", "minidb", "mdl"])
def test_checkpoints_are_converted_and_back(
    ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / f"x.{ending}"
    target.write_bytes(b"before")
    assert convert(CHECKPOINT, "-o", str(target)) == 0
    assert convert(str(target), "-o", str(tmp_path / "back.minidb")) == 0
    assert (tmp_path / "back.minidb").read_bytes() == Path(CHECKPOINT).read_bytes()
    assert capsys.readouterr() == ("", "")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_file_may_be_converted_onto_itself(tmp_path: Path) -> None:
    path = tmp_path / "x.minidb"
    path.write_bytes(Path(CHECKPOINT).read_bytes())
    assert convert(str(path), "-o", str(path)) == 0
    assert path.read_bytes() == Path(CHECKPOINT).read_bytes()


def test_an_init_net_is_run_for_its_blobs(tmp_path: Path) -> None:
    nets(tmp_path)
    assert convert(str(tmp_path / "init.pb"), "-o", str(tmp_path / "x.npz")) == 0
    with np.load(tmp_path / "x.npz") as found:
        assert {name: found[name].tolist() for name in found} == {
            "w": [[0.5] * 4] * 3,
            "b": [0.0] * 3,
        }


def test_nets_are_converted_to_programs_and_source(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    given = nets(tmp_path)
    for target in ("x.pt2", "folder", "other/"):
        assert convert(*given, "-o", str(tmp_path / target), "--input", "x=2,4") == 0
    program = torch.export.load(tmp_path / "x.pt2").module()
    assert program(torch.ones(5, 4)).tolist() == [[2.0] * 3] * 5
    for folder in ("folder", "other"):
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == [
            "module.py",
            "weights.safetensors",
        ]
    assert convert(PREDICTOR, "-o", str(tmp_path / "predictor.pt2")) == 0


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        ([], 2, "Add --input NAME=SIZES"),
        (["--input", "nothing=1"], 2, "does not read 'nothing'"),
        (["--input", "x=2,5"], 1, "[2, 5]"),
        (["--input", "x=2,4:nothing"], 1, "no elements of 'nothing'"),
    ],
)
def test_missing_and_wrong_inputs_are_refused_in_one_line(
    more: list[str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert(*nets(tmp_path), "-o", str(tmp_path / "x.pt2"), *more) == status
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "x.pt2").exists()


@pytest.mark.parametrize(
    ("source", "target", "status"),
    [
        (CHECKPOINT, "x.pt2", 1),
        ("x.npz", "y.onnx", 2),
        (CHECKPOINT, "missing/x.npz", 1),
        (CHECKPOINT, "/sys/kernel/x.npz", 1),
        (CHECKPOINT, "/proc/x.safetensors", 1),
        (CHECKPOINT, "/sys/kernel/x.minidb", 1),
        ("x.npz/", "y.safetensors", 1),
    ],
)
def test_impossible_targets_are_refused_in_one_line(
    source: str,
    target: str,
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", x=np.zeros(3))
    assert convert(source, "-o", target) == status
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


# Each sends the process what it must survive when the first bytes were written.
INTERRUPTED = """
import os, signal
from bridge.shell import text_tables as tables
def interrupt(self, done, total):
    os.kill(os.getpid(), signal.SIGINT)
tables.Progress.__call__ = interrupt
"""
FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))\n"
KILLED = INTERRUPTED.replace("SIGINT", "SIGKILL")


@pytest.mark.parametrize("ending", ["npz", "safetensors", "minidb", "lmdb"])
@pytest.mark.parametrize(
    ("code", "status"), [(INTERRUPTED, 130), (FULL, 1), (KILLED, -9)], ids=["^C", "full", "killed"]
)
def test_the_target_stays_as_it_was(ending: str, code: str, status: int, tmp_path: Path) -> None:
    target = tmp_path / f"x.{ending}"
    if ending == "lmdb":
        pytest.importorskip("lmdb")
        assert convert(PREDICTOR, "-o", str(target)) == 0
    else:
        target.write_bytes(b"before")
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    program = f"import sys\nfrom bridge.shell.main import main\n{code}\nsys.exit(main())"
    command = [sys.executable, "-c", program, "caffe2", "convert", CHECKPOINT, "-o", str(target)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment(), timeout=300, check=False
    )
    assert done.returncode == status, done.stderr
    assert done.stderr.count("\n") == (1 if status == 1 else 0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    if status == -9:  # leaves the unfinished file, which is hidden
        files = [path for path in files if ".tmp" not in str(path)]
    assert {path.name: path.read_bytes() for path in files} == before


def test_a_terminal_shows_progress(tmp_path: Path) -> None:
    for code, sign in (("", "\x1b["), ("sys.modules['rich'] = None", "100%")):
        target = str(tmp_path / "x.npz")
        status, shown = bridge_on_terminal("caffe2", "convert", CHECKPOINT, "-o", target, code=code)
        assert status == 0
        assert sign in shown
        assert "Traceback" not in shown


def test_an_interrupt_leaves_no_file_and_no_traceback(tmp_path: Path) -> None:
    target = str(tmp_path / "x.npz")
    status, shown = bridge_on_terminal(
        "caffe2", "convert", CHECKPOINT, "-o", target, code=INTERRUPTED
    )
    assert status == 130
    assert "Traceback" not in shown
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "more", "target", "said"),
    [
        ("net.pbtxt", [], "x.npz", "'net.pbtxt' is a net that reads 'x', 'w', 'b' and holds no"),
        ("init.pb", ["--init-net", "net.pbtxt"], "x.pt2", "the two nets swapped?"),
        ("objects.npz", [], "x.safetensors", "'objects.npz': Array 'a' has elements of object"),
        ("init.pb", [], "folder.npz", "'folder.npz' exists and is not a regular file"),
        ("init.pb", [], "missing/x.npz", "'missing/x.npz' cannot be written"),
        ("init.pb", [], "missing/x.lmdb", "'missing/x.lmdb' cannot be written"),
        ("init.pb", [], "missing/x.minidb", "'missing/x.minidb' cannot be written"),
    ],
)
def test_errors_name_the_fault_of_the_file(
    source: str,
    more: list[str],
    target: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if target.endswith("lmdb"):
        pytest.importorskip("lmdb")
    monkeypatch.chdir(tmp_path)
    nets(tmp_path)
    (tmp_path / "folder.npz").mkdir()
    np.savez("objects.npz", a=np.array([None]))
    assert convert(source, "-o", target, *more) == 1
    err = capsys.readouterr().err
    assert said in err
    assert ".tmp" not in err
