# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/ run, and the first of them fails when what it shows is not so."""

from __future__ import annotations

import array
import functools
import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2

EXAMPLES = Path(__file__).parents[1] / "examples"
# What TensorFlow logs before its level can be set.
LOG = re.compile(r"^(WARNING: All log messages before absl|[IWE]\d{4} ).*\n", re.M)
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
# What a program needs beside the packages that all tests have.
NEEDS = {
    "caffe2_checkpoint": "safetensors",
    "convert_with_ray": "ray",
    "state_dict_to_jax": "safetensors",
}


@functools.cache
def run(program: Path) -> subprocess.CompletedProcess[str]:
    """Run a program once as a user would, in a fresh interpreter; warnings are errors there too.

    One that imports caffe2 knows nothing of the bridge, so the bridge runs it.
    """
    is_legacy = "from caffe2" in program.read_text(encoding="utf-8")
    runner = ["-m", "bridge.caffe2"] if is_legacy else []
    return subprocess.run(
        [sys.executable, "-W", "error", *runner, str(program)],
        capture_output=True,
        text=True,
        timeout=600,
    )


def load(name: str, path: Path) -> ModuleType:
    """Import a file as the module `name`."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses looks its module up there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def quickstart() -> Iterator[ModuleType]:
    threads = torch.get_num_threads()  # main() sets it, for the whole process
    module = load("quickstart", EXAMPLES / "quickstart.py")
    yield module
    torch.set_num_threads(threads)
    del sys.modules["quickstart"]
    module.workspace.ResetWorkspace()


def test_the_examples_are_there() -> None:
    assert {"accept_any_tensor", "quickstart", "two_wrappers"} <= {p.stem for p in PROGRAMS}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_example_runs(program: Path) -> None:
    if program.stem in NEEDS:
        pytest.importorskip(NEEDS[program.stem])
    done = run(program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout
    assert not LOG.sub("", done.stderr)


def test_quickstart_ends_with_one_address_for_each_memory() -> None:
    output = run(EXAMPLES / "quickstart.py").stdout
    rows = re.findall(r"^(\w+(?: \w+)?) +\S.* (0x[0-9a-f]+) +(\d+) +(\d+)$", output, re.MULTILINE)
    addresses: dict[str, set[str]] = {}
    for what, address, nbytes, copied in rows:
        addresses.setdefault(what, set()).add(address)
        assert int(nbytes) > 0
        assert copied == "0"
    assert addresses.keys() == {"images", "held out", "labels", "fc1", "fc2"}
    assert all(len(seen) == 1 for seen in addresses.values()), addresses
    assert output.splitlines()[-1] == "0 bytes copied on the way"


def test_quickstart_reports_over_90_percent() -> None:
    match = re.search(r"([\d.]+)% of 360 held-out", run(EXAMPLES / "quickstart.py").stdout)
    assert match is not None
    assert float(match[1]) > 90


def test_quickstart_fails_on_a_copy(
    quickstart: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quickstart, "STEPS", 60)
    monkeypatch.setattr(quickstart.bridge, "to_numpy", lambda x: np.array(x.numpy()))
    assert quickstart.main() == 1
    assert "FAILED" in capsys.readouterr().err


def test_quickstart_fails_on_poor_accuracy(
    quickstart: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quickstart, "STEPS", 0)
    assert quickstart.main() == 1
    assert "FAILED: 0 bytes copied" in capsys.readouterr().err


def test_ray_goes_on_when_a_worker_is_killed() -> None:
    pytest.importorskip("ray")
    lines = run(EXAMPLES / "convert_with_ray.py").stdout.splitlines()
    assert lines[-2:] == ["6 of 6 converted", "one worker was killed"]


def test_caffe2_training_reaches_loss_and_accuracy_of_the_real_caffe2() -> None:
    lines = run(EXAMPLES / "caffe2_training.py").stdout.splitlines()
    assert len(lines) == 13
    epoch, loss, accuracy = re.findall(r"[\d.]+", lines[-2])
    assert int(epoch) == 12
    assert float(loss) == pytest.approx(0.105, abs=0.02)
    assert float(accuracy) == pytest.approx(0.956, abs=0.02)


def compiled(c_file: Path, folder: Path, *options: str) -> ModuleType:
    """Compile a C extension without optimisation, as the heads of the examples say, and load it."""
    module_file = folder / f"{c_file.stem}.so"
    compiler = [*(os.environ.get("CC") or "cc").split(), "-shared", "-fPIC", "-O0", *options]
    include = f"-I{sysconfig.get_path('include')}"
    command = [*compiler, include, str(c_file), "-o", str(module_file)]
    subprocess.run(command, check=True, timeout=600)
    return load(c_file.stem, module_file)


@pytest.fixture(scope="module")
def native_sum(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    pytest.importorskip("Cython", reason="the example is compiled by Cython")
    folder = tmp_path_factory.mktemp("native_sum")
    c_file = folder / "native_sum.c"
    cython = [sys.executable, "-m", "cython", str(EXAMPLES / "native_sum.pyx"), "-o", str(c_file)]
    subprocess.run(cython, check=True, timeout=600)
    yield compiled(c_file, folder, "-w")
    del sys.modules["native_sum"]


@pytest.fixture(scope="module")
def native_scale(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    headers = Path(torch.__file__).parent / "include" / "ATen"
    folder = tmp_path_factory.mktemp("native_scale")
    yield compiled(EXAMPLES / "native_scale.c", folder, "-Wall", "-Werror", f"-I{headers}")
    del sys.modules["native_scale"]


def test_native_scale_multiplies_any_tensor_in_place(native_scale: ModuleType) -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    for tensor in (
        matrix[:, 1],
        matrix[1, ::-1],
        torch.from_numpy(matrix)[0],
        at.arange(3, dtype="float64"),
        caffe2.Tensor([2], [1.5, 2.5]),
        array.array("d", [1, 2]),
    ):
        before = bridge.to_numpy(tensor).copy()
        native_scale.scale(tensor, 2.0)
        assert bridge.to_numpy(tensor).tolist() == (2 * before).tolist()


def test_native_scale_refuses_other_tensors_with_a_reason(native_scale: ModuleType) -> None:
    for refused in (np.ones((2, 2)), torch.ones(2)):
        with pytest.raises(TypeError, match="one dimension of float64"):
            native_scale.scale(refused, 2.0)
    fixed = np.ones(2)
    fixed.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        native_scale.scale(fixed, 2.0)
    assert fixed.tolist() == [1, 1]
    with pytest.raises(BufferError, match="byte order"):
        native_scale.scale(np.arange(3.0).astype(">f8"), 2.0)
    with pytest.raises(TypeError):
        native_scale.scale([1.0], 2.0)


def test_native_sum_takes_any_tensor(native_sum: ModuleType) -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    for tensor in (
        matrix,
        matrix.T[::-1, ::2],
        torch.from_numpy(matrix)[:, 1:],
        at.arange(3, dtype="float64"),
        caffe2.Tensor([2], [1.5, 2.5]),
        array.array("d", [1, 2]),
        np.zeros((0, 3)),
        np.float64(3),
    ):
        assert native_sum.total(tensor) == bridge.to_numpy(tensor).sum()


def test_native_sum_refuses_other_tensors_with_a_reason(native_sum: ModuleType) -> None:
    with pytest.raises(TypeError, match="float64, not float32"):
        native_sum.total(torch.ones(2))
    with pytest.raises(TypeError, match="list"):
        native_sum.total([1.0])
    with pytest.raises(BufferError, match="byte order"):
        native_sum.total(np.arange(3.0).astype(">f8"))
