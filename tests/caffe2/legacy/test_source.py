# SPDX-License-Identifier: Apache-2.0
"""An old PyTorch is found in its wheel, its folders, and nowhere else."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2.legacy.source import Source
from tests.helpers.old_pytorch import write_folder, write_wheel


@pytest.mark.parametrize("place", ["", "caffe2", "torch"])
def test_a_folder_is_found_from_each_place_in_it(tmp_path: Path, place: str) -> None:
    folder = write_folder(tmp_path)
    source = Source(folder / place, "test")
    assert source.folder == str(folder)
    found = source.find_spec("caffe2.python.pipeline")
    assert found is not None and found.origin == str(folder / "caffe2/python/pipeline.py")
    package = source.find_spec("caffe2.python.old_layers")
    assert package is not None
    assert package.submodule_search_locations == [str(folder / "caffe2/python/old_layers")]
    assert source.find_spec("caffe2.python.nothing") is None
    assert source.find_spec("caffe2.nothing.at_all") is None


def test_the_home_folder_and_relative_paths_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_folder(tmp_path / "old")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    expected = str(tmp_path / "old")
    assert Source("~/old", "test").folder == Source("old", "test").folder == expected


def test_a_wheel_is_read_where_it_lies(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "torch-1.8.1-cp38-cp38-linux.whl")
    source = Source(wheel, "test")
    found = source.find_spec("caffe2.python.old_layers.fc")
    assert found is not None and found.origin == str(wheel / "caffe2/python/old_layers/fc.py")
    assert source.find_spec("caffe2.python.nothing") is None
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_paths_without_caffe2_are_refused(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "text.whl").write_text("not a wheel")
    for path in (tmp_path, tmp_path / "torch", tmp_path / "text.whl", tmp_path / "nothing"):
        with pytest.raises(EnforceNotMet, match=path.name) as info:
            Source(path, "install")
        assert "no package caffe2" in str(info.value) or "no file or folder" in str(info.value)


def test_compiled_modules_are_not_loaded(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (folder / f"caffe2/python/caffe2_pybind11_state{suffix}").write_bytes(b"")
    source = Source(folder, "test")
    with pytest.raises(ModuleNotFoundError, match="compiled") as info:
        source.find_spec("caffe2.python.caffe2_pybind11_state")
    assert info.value.name == "caffe2.python.caffe2_pybind11_state"


def test_files_compiled_by_python_are_not_loaded(tmp_path: Path) -> None:
    import py_compile

    folder = write_folder(tmp_path)
    pipeline = folder / "caffe2/python/pipeline.py"
    compiled = py_compile.compile(str(pipeline), doraise=True)
    shutil.move(compiled, pipeline.with_suffix(".pyc"))
    pipeline.unlink()
    assert Source(folder, "test").find_spec("caffe2.python.pipeline") is None
