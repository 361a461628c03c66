# SPDX-License-Identifier: Apache-2.0
"""bridge.h: modules in plain C, pybind11 and nanobind that take and return any tensor."""

from __future__ import annotations

import array
import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.test_examples import EXAMPLES, compiled

INCLUDE = f"-I{bridge.get_include()}"


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("header_c")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror"]
    yield compiled(EXAMPLES / "header_c.c", folder, *strict, INCLUDE)
    del sys.modules["header_c"]


def test_takes_the_memory_of_any_tensor(native: ModuleType) -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    for tensor in (
        matrix[:, 1],
        matrix[1, ::-1],
        torch.from_numpy(matrix)[0],
        at.arange(3, dtype="float64"),
        caffe2.Tensor([2], [1.5, 2.5]),
        array.array("d", [1, 2]),
        torch.ones(3, dtype=torch.float64).__dlpack__(),
    ):
        if type(tensor).__name__ == "PyCapsule":
            native.scale(tensor, 2.0)
            continue
        before = bridge.to_numpy(tensor).copy()
        native.scale(tensor, 2.0)
        assert bridge.to_numpy(tensor).tolist() == (2 * before).tolist()


@pytest.mark.parametrize(
    ("x", "error", "said"),
    [
        (np.ones(2, np.float32), TypeError, "float64 is required, and this one has float32"),
        (bridge.asarray(["a"]), BufferError, "string"),
        ([1.0], TypeError, "list"),
        (np.ones((2, 2)), ValueError, r"1 dimensions is required, and this one has sizes \[2, 2\]"),
        (np.arange(3.0).astype(">f8"), BufferError, "byte order"),
        (at.from_blob(bytes(8), [1], dtype="float64"), BufferError, "read-only"),
        (torch.ones(2, requires_grad=True), BufferError, r"detach\(\)"),
        (torch.ones(2, device="meta"), BufferError, "meta"),
        (caffe2.Tensor(), BufferError, "undefined"),
        (caffe2.Tensor([2], "cpu"), BufferError, "no element type"),
    ],
    ids=str,
)
def test_refuses_with_the_reason(
    native: ModuleType, x: object, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        native.scale(x, 2.0)


CALLS = r"""
#include <bridge.h>
/* call(x, type, ndim, flags); None is NULL. The module does not call bridge_import. */
static PyObject *call(PyObject *module, PyObject *args) {
    PyObject *x;
    int type, ndim, flags, failed;
    bridge_tensor t;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oiii", &x, &type, &ndim, &flags)) return NULL;
    failed = bridge_take(x == Py_None ? NULL : x, &t, type, ndim, flags);
    bridge_release(&t);
    if (failed) return NULL;
    Py_RETURN_NONE;
}
static PyObject *absent(PyObject *module, PyObject *name) {
    return bridge_convert(PyObject_GetAttr(module, name), "torch");
}
static PyObject *made(PyObject *module, PyObject *args) {
    int type, ndim;
    (void)module;
    if (!PyArg_ParseTuple(args, "ii", &type, &ndim)) return NULL;
    return bridge_new(type, ndim, NULL, NULL);
}
static PyMethodDef functions[] = {{"call", call, METH_VARARGS, ""},
                                  {"absent", absent, METH_O, ""},
                                  {"made", made, METH_VARARGS, ""},
                                  {NULL, NULL, 0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "calls_c", NULL, -1, functions, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_calls_c(void) { return PyModule_Create(&definition); }
"""


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("calls_c")
    (folder / "calls_c.c").write_text(CALLS)
    yield compiled(folder / "calls_c.c", folder, "-Wall", "-Wextra", "-Werror", INCLUDE)
    del sys.modules["calls_c"]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((None, 0, -1, 0), SystemError, "NULL"),
        ((np.ones(2), -5, -1, 0), ValueError, "-5 is not an element type"),
        ((np.ones(2), 0, -7, 0), ValueError, "-7 dimensions"),
        ((np.ones(2), 0, -1, 64), ValueError, "flags 64"),
    ],
)
def test_arguments_that_are_none_of_the_header_are_refused(
    calls: ModuleType, arguments: tuple[object, ...], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        calls.call(*arguments)
    calls.call(np.ones(2), 0, -1, 0)


def test_the_error_of_a_call_that_gave_null_is_kept(calls: ModuleType) -> None:
    with pytest.raises(AttributeError, match="nosuch"):
        calls.absent("nosuch")


def test_a_new_tensor_needs_a_shape_and_a_type(calls: ModuleType) -> None:
    assert calls.made(type_number(2, 64), 0).dtype == c10.float64
    with pytest.raises(ValueError, match="shape of 3 dimensions is NULL"):
        calls.made(type_number(2, 64), 3)
    with pytest.raises(ValueError, match="not an element type"):
        calls.made(type_number(77, 64), 0)


def type_number(code: int, bits: int) -> int:
    return code << 8 | bits


def test_copies_only_where_a_copy_is_allowed(native: ModuleType) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for given in (x, x.astype(">f4"), x.T.copy().T, torch.from_numpy(x)[:, :]):
        assert native.row_sums(given).tolist() == [3.0, 12.0]
    assert native.row_sums(x.T).tolist() == [3.0, 5.0, 7.0]
    assert native.row_sums(np.zeros((0, 3), np.float32)).tolist() == []


def test_describes_the_tensor_it_took(native: ModuleType) -> None:
    x = np.zeros((2, 3), np.int16)
    assert native.describe(x) == (x.ctypes.data, 6, 2, 16, 2, 1, 0)
    x.setflags(write=False)
    assert native.describe(x) == (x.ctypes.data, 6, 2, 16, 2, 1, 1)
    t = torch.zeros(3, dtype=torch.bfloat16)
    assert native.describe(t) == (t.data_ptr(), 3, 1, 4 << 8 | 16, 2, 1, 0)


@pytest.mark.parametrize("library", ["at", "numpy", "torch"])
def test_memory_is_freed_once_when_the_last_view_is_gone(native: ModuleType, library: str) -> None:
    before = native.times_freed()
    x = native.squares(5, library)
    view = x[1:]
    del x
    gc.collect()
    assert native.times_freed() == before + (library == "torch")  # read-only: torch has a copy
    assert view.tolist() == [1, 4, 9, 16]
    del view
    gc.collect()
    assert native.times_freed() == before + 1


def test_memory_that_is_handed_out_is_read_only_where_it_was_said(native: ModuleType) -> None:
    assert native.squares(3, "numpy").flags.writeable is False
    with pytest.raises(c10.EnforceNotMet, match="read-only"):
        native.squares(3, "at").fill_(0)
    assert native.squares(0, "at").sizes() == (0,)


def test_errors_leave_no_memory_behind(native: ModuleType) -> None:
    before = native.times_freed()
    with pytest.raises(ValueError, match="nothing"):
        native.squares(3, "nothing")
    gc.collect()
    assert native.times_freed() == before + 1


def test_a_tensor_that_gets_other_memory_meanwhile_stays_as_it_was_taken(
    native: ModuleType,
) -> None:
    x = caffe2.Tensor([2], [1.0, 2.0])
    native.scale(x, 3.0)
    x.Resize(1000)
    x.mutable_data("float64")[:] = 1.0
    native.scale(x, 3.0)
    assert x.numpy().sum() == 3000.0


def test_the_header_is_plain_c_and_cpp_and_short(tmp_path: Path) -> None:
    header = Path(bridge.get_include(), "bridge.h")
    assert len(header.read_text().splitlines()) <= 400
    source = tmp_path / "both.cpp"
    source.write_text('#include <bridge.h>\nextern "C" int f() { return bridge_import(); }\n')
    compiled_only = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "-O0"]
    python = subprocess.check_output(
        [sys.executable, "-c", "import sysconfig; print(sysconfig.get_path('include'))"], text=True
    )
    command = ["c++", *compiled_only, INCLUDE, f"-isystem{python.strip()}", str(source)]
    subprocess.run([*command, "-o", str(tmp_path / "both.o")], check=True, timeout=300)


def test_pybind11_modules_take_and_return_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "c++")
    pybind11 = pytest.importorskip("pybind11")
    options = ["-std=c++17", f"-I{pybind11.get_include()}", INCLUDE]
    module = compiled(EXAMPLES / "header_pybind11.cpp", tmp_path, *options)
    total = module.add(torch.ones(3), np.arange(6, dtype=np.float32)[::2])
    assert isinstance(total, at.Tensor)
    assert total.tolist() == [1.0, 3.0, 5.0]
    with pytest.raises(TypeError, match="float32 is required"):
        module.add(torch.ones(3), np.arange(3.0))
    with pytest.raises(ValueError, match="different sizes"):
        module.add(torch.ones(3), torch.ones(2))


def test_nanobind_modules_take_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "c++")
    nanobind = pytest.importorskip("nanobind")
    root = Path(nanobind.source_dir()).parent
    source = tmp_path / "header_nanobind.cpp"
    combined = f'#include "{nanobind.source_dir()}/nb_combined.cpp"\n'
    source.write_text((EXAMPLES / "header_nanobind.cpp").read_text() + combined)
    maps = f"-I{root / 'ext' / 'robin_map' / 'include'}"
    options = ["-std=c++17", "-fvisibility=hidden", "-fno-strict-aliasing"]
    options += [f"-I{nanobind.include_dir()}", maps, INCLUDE]
    module = compiled(source, tmp_path, *options)
    assert module.largest(torch.arange(6.0, dtype=torch.float64).reshape(2, 3)) == 5.0
    assert module.largest(bridge.from_dlpack(np.array([1.0, -2.0]))) == 1.0
    with pytest.raises(BufferError, match="contiguous"):
        module.largest(np.ones((2, 3)).T)
    with pytest.raises(ValueError, match="no elements"):
        module.largest(np.ones(0))
