# SPDX-License-Identifier: Apache-2.0
"""examples/caffe2_checkpoint.py on files of one's own; test_examples runs it as it is."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from bridge.caffe2 import save_checkpoint, workspace

load_file = pytest.importorskip("safetensors.numpy").load_file
ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "checkpoint_chunks.minidb"


@pytest.fixture
def example(fresh_workspace: None) -> Iterator[ModuleType]:
    path = ROOT / "examples" / "caffe2_checkpoint.py"
    spec = importlib.util.spec_from_file_location("caffe2_checkpoint", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in workspace.Workspaces():
        workspace.SwitchWorkspace(name)
        workspace.ResetWorkspace()


def test_data_is_the_recorded_file() -> None:
    data = ROOT / "examples" / "data" / "checkpoint.minidb"
    assert data.read_bytes() == GOLDEN.with_name("checkpoint.minidb").read_bytes()


def test_another_file_is_converted_and_never_written_over(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(GOLDEN, tmp_path / "model.minidb")
    assert example.main([str(tmp_path / "model.minidb")]) == 0
    assert "every blob is what it was" in capsys.readouterr().out
    assert sorted(os.listdir(tmp_path)) == [
        "model.back.minidb",
        "model.minidb",
        "model.safetensors",
    ]
    tensors = load_file(tmp_path / "model.safetensors")
    assert sorted(tensors) == ["conv/b", "conv/w", "empty", "half", "iter"]
    assert np.array_equal(tensors["conv/w"], workspace.FetchBlob("conv/w"))
    # Again: nothing is written over.
    assert example.main([str(tmp_path / "model.minidb")]) == 1
    assert "is there already" in capsys.readouterr().err


def test_a_large_file_shows_progress(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(example, "LARGE", 1 << 20)
    workspace.FeedBlob("x", np.zeros(1 << 20, np.float32))
    save_checkpoint(str(tmp_path / "x.minidb"), ["x"])
    workspace.ResetWorkspace()
    assert example.main([str(tmp_path / "x.minidb"), str(tmp_path / "out.safetensors")]) == 0
    output = capsys.readouterr().out
    for line in ("reading x.minidb: 100% of 4 MiB", "checking out.back.minidb: 100% of 4 MiB"):
        assert line in output


def test_a_changed_blob_is_named(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save = example.save_file

    def change(tensors: dict[str, object], *args: object) -> None:
        save({**tensors, "conv/b": tensors["conv/b"] + 1}, *args)  # type: ignore[operator]

    monkeypatch.setattr(example, "save_file", change)
    assert example.main([str(GOLDEN), str(tmp_path / "out.safetensors")]) == 1
    assert "FAILED: not as they were: conv/b\n" in capsys.readouterr().err


def test_bad_file_says_so(
    example: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").write_bytes(b"no checkpoint")
    assert example.main([str(tmp_path / "x")]) == 1
    assert "not a minidb file, or damaged" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["x"]
