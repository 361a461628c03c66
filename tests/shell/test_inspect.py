# SPDX-License-Identifier: Apache-2.0
"""bridge caffe2 inspect: nets, checkpoints and predictor exports, recognized by their content."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core
from bridge.shell.main import main

GOLDEN = Path(__file__).parents[1] / "golden"
CHECKPOINT = GOLDEN / "checkpoint.minidb"
PREDICTOR = GOLDEN / "predictor.mdl"


def inspected(capsys: pytest.CaptureFixture[str], *paths: Any) -> list[dict[str, Any]]:
    assert main(["caffe2", "inspect", "--json", *map(str, paths)]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def net() -> Any:
    net = core.Net("small")
    net.Conv(["data", "w"], "y", kernel=3, name="first", ws=[1.0, 2.0])
    net.GivenTensorFill([], "z", values=np.zeros(100, np.float32), shape=[100])
    return net


def test_nets_are_shown_from_bytes_and_from_text(
    net: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_bytes(net.Proto().SerializeToString())
    (tmp_path / "b").write_text(str(net.Proto()))
    one, other = inspected(capsys, tmp_path / "a", tmp_path / "b")
    assert {**one, "file": ""} == {**other, "file": ""}
    assert (one["format"], one["name"]) == ("net", net.Proto().name)
    conv, fill = one["operators"]
    assert (conv["type"], conv["inputs"], conv["outputs"]) == ("Conv", ["data", "w"], ["y"])
    assert conv["arguments"] == {"kernel": 3, "ws": [1.0, 2.0]}
    assert fill["arguments"]["values"] == "100 floats"
    assert one["external_input"] == ["data", "w"]
    assert main(["caffe2", "inspect", str(tmp_path / "a")]) == 0
    shown = capsys.readouterr().out
    assert "kernel=3" in shown
    assert "2 operators" in shown


def test_checkpoints_are_shown_whatever_their_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "misleading.pb"
    shutil.copy(CHECKPOINT, copy)
    (found,) = inspected(capsys, copy)
    assert found["format"] == "minidb"
    blobs = {one["name"]: one for one in found["blobs"]}
    assert blobs["conv/w"] == {
        "name": "conv/w",
        "kind": "tensor",
        "dtype": "float32",
        "sizes": [4, 3, 3, 5],
        "nbytes": 720,
    }
    assert blobs["labels"]["kind"] == "strings"
    assert (blobs["q"]["kind"], blobs["q"]["scale"]) == ("int8 tensor", 0.5)
    targets = [tmp_path / "x.npz", tmp_path / "x.safetensors"]
    for target in targets:
        assert main(["caffe2", "convert", str(CHECKPOINT), "-o", str(target)]) == 0
    for other in inspected(capsys, *targets):
        same = {one["name"]: one for one in other["blobs"]}
        assert same.keys() == blobs.keys()
        assert same["conv/w"] == blobs["conv/w"]


def test_a_predictor_export_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = inspected(capsys, PREDICTOR)
    assert [one["name"] for one in found["blobs"]] == ["fc1_w", "fc1_b"]
    predictor = found["predictor"]
    assert (predictor["inputs"], predictor["outputs"]) == (["data"], ["prob"])
    assert [one["type"] for one in predictor["net"]["operators"]] == ["FC", "Relu", "Softmax"]
    assert main(["caffe2", "inspect", str(PREDICTOR)]) == 0
    shown = capsys.readouterr().out
    assert "a predictor export (minidb)" in shown
    assert "3 x 4" in shown


def test_unknown_files_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(0)
    contents = {
        "empty": b"",
        "text": b"Some text, which is no net.\n",
        "zip": b"PK\x03\x04" + bytes(100),
        "bytes": random.bytes(500),
        "pickle": b"\x80\x04N.",
        "elf": b"\x7fELF" + bytes(100),
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        assert main(["caffe2", "inspect", str(tmp_path / name)]) == 1
        said = capsys.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert name in said.err


def test_the_other_files_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["caffe2", "inspect", str(tmp_path / "none"), str(CHECKPOINT)]) == 1
    said = capsys.readouterr()
    assert "conv/w" in said.out
    assert said.err.count("\n") == 1
