# SPDX-License-Identifier: Apache-2.0
"""`convert` to each library and back, against the real library, by the same rules for all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bridge
from tests.helpers import alone

# tinygrad looks for a compiler otherwise
os.environ.setdefault("DEV", "PYTHON")

ALL = {
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "bfloat16", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2"),
}
PLAIN = ALL - {"bfloat16", "float8_e4m3fn", "float8_e5m2"}
REAL = PLAIN - {"complex64", "complex128"}
COMPLEX = {"complex64", "complex128"}
# Library: the types it takes, those of them that it copies, the fewest and most dimensions.
LIBRARIES: dict[str, tuple[set[str], set[str], int, int]] = {
    "awkward": (PLAIN, set(), 1, 9),
    "mindspore": (REAL | {"bfloat16"}, set(), 0, 8),
    "mlx": (ALL - {"float64", "complex128", "float8_e4m3fn", "float8_e5m2"}, ALL, 0, 9),
    "onnxruntime": (ALL - COMPLEX, set(), 0, 9),
    "openvino": (ALL - COMPLEX, set(), 0, 9),
    "paddle": (ALL - {"uint16"}, set(), 0, 9),
    "pandas": (PLAIN, set(), 1, 2),
    "polars": (REAL, {"bool"}, 1, 9),
    "pyarrow": (REAL, {"bool"}, 1, 9),
    "tinygrad": (REAL, set(), 0, 9),
    "tvm_ffi": (ALL, set(), 0, 9),
    "warp": (REAL | {"bfloat16"}, set(), 1, 4),
}
MODULES = {"mlx": "mlx.core"}
# Their objects are read-only for everybody.
IMMUTABLE = {"awkward", "pandas", "polars", "pyarrow"}


@pytest.fixture(params=sorted(LIBRARIES))
def library(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    alone.importorskip(MODULES.get(name, name))
    return name


def tensor(dtype: str, sizes: tuple[int, ...] = (4,)) -> Any:
    values = np.arange(int(np.prod(sizes))).reshape(sizes) % 5
    return bridge.asarray(values, dtype=dtype)


def sizes_of(library: str) -> tuple[int, ...]:
    return (2, 3) if LIBRARIES[library][3] > 1 else (6,)


@pytest.mark.parametrize("dtype", sorted(ALL))
def test_tensors_go_to_each_library_and_back(library: str, dtype: str) -> None:
    types, copied, _, _ = LIBRARIES[library]
    x = tensor(dtype, sizes_of(library))
    if dtype not in types:
        with pytest.raises(BufferError):
            bridge.convert(x, library)
        return
    with bridge.audit() as log:
        y = bridge.convert(x, library)
    back = bridge.from_dlpack(y)
    assert back.dtype() is x.dtype()
    assert back.sizes() == x.sizes()
    assert back.tolist() == x.tolist()
    assert bridge.convert(y, library) is y
    assert [record.copied for record in log.records] == [dtype in copied]
    if dtype in copied:
        assert log.copied_bytes == x.nbytes()
        with pytest.raises(BufferError):
            bridge.convert(x, library, copy=False)
        with bridge.no_copy(), pytest.raises(BufferError):
            bridge.convert(x, library)
        return
    assert back.data_ptr() == x.data_ptr()
    assert bridge.shares_memory(bridge.convert(x, library, copy=False), x)
    assert not bridge.shares_memory(bridge.convert(x, library, copy=True), x)
    assert back.readonly == (library in IMMUTABLE)


def test_memory_lives_as_long_as_the_object(library: str) -> None:
    x = tensor("int32", (1 << 16,))
    y = bridge.convert(x, library)
    values = x.tolist()
    del x
    back = bridge.from_dlpack(y)
    del y
    assert back.tolist() == values


def test_read_only_memory_is_not_made_writable(library: str) -> None:
    held = b"abcdefgh" * 8
    back = bridge.from_dlpack(bridge.convert(held, library))
    assert back.tolist() == list(held)
    assert back.readonly or back.data_ptr() != bridge.from_dlpack(held).data_ptr()


@pytest.mark.parametrize("step", [-1, 2])
def test_strided_memory_keeps_its_values(library: str, step: int) -> None:
    held = np.arange(8, dtype=np.float32)[::step]
    assert bridge.from_dlpack(bridge.convert(held, library)).tolist() == held.tolist()
    columns = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert bridge.from_dlpack(bridge.convert(columns, library)).tolist() == columns.tolist()


def test_numbers_of_dimensions_that_a_library_lacks_are_refused(library: str) -> None:
    _, _, least, most = LIBRARIES[library]
    for ndim in range(6):
        x = tensor("float32", (1,) * ndim)
        if least <= ndim <= most:
            assert bridge.from_dlpack(bridge.convert(x, library)).sizes() == x.sizes()
        else:
            with pytest.raises(BufferError):
                bridge.convert(x, library)


def test_tensors_without_elements_keep_their_sizes(library: str) -> None:
    x = tensor("float32", (0, 3) if LIBRARIES[library][3] > 1 else (0,))
    assert bridge.from_dlpack(bridge.convert(x, library)).sizes() == x.sizes()


def test_every_door_takes_objects_of_each_library(library: str) -> None:
    y = bridge.convert(tensor("float32"), library)
    values = [0.0, 1.0, 2.0, 3.0]
    for name in ("torch", "numpy", "at", "caffe2"):
        out = bridge.convert(y, name)
        assert bridge.to_numpy(out).tolist() == values
    assert bridge.asarray(y).tolist() == values
    assert bridge.explain(y).nbytes == 16
    with bridge.no_copy():
        bridge.from_dlpack(y)


def test_all_libraries_are_tested() -> None:
    from bridge import libraries
    from bridge.exchange.registry import exporting_names

    elsewhere = {"cupy", "jax", "tensorflow"}
    assert set(exporting_names()) >= LIBRARIES.keys() | elsewhere
    assert not libraries.IMPORT_ONLY & set(exporting_names())


def test_a_library_that_is_not_installed_is_an_import_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "warp", None)
    with pytest.raises(ImportError, match="warp"):
        bridge.convert(np.ones(1), "warp")


def test_paddle_tensors_with_gradients_and_sparse_ones_are_refused() -> None:
    paddle = alone.importorskip("paddle")
    w = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    for call in (bridge.from_dlpack, bridge.to_torch, bridge.to_numpy, bridge.asarray):
        with pytest.raises(BufferError, match=r"detach\(\)"):
            call(w)
    assert bridge.from_dlpack(w.detach()).tolist() == [1, 2]
    sparse = paddle.sparse.sparse_coo_tensor([[0], [1]], [1.0], [2, 2])
    with pytest.raises(BufferError, match="sparse"):
        bridge.from_dlpack(sparse)


def test_onnxruntime_values_of_bools_and_inner_values_are_read() -> None:
    ort = pytest.importorskip("onnxruntime")
    x = bridge.from_dlpack(ort.OrtValue.ortvalue_from_numpy(np.array([True, False])))
    assert x.dtype().name == "bool"
    assert bridge.convert(np.array([True]), "onnxruntime").data_type() == "tensor(bool)"
    outer = ort.OrtValue.ortvalue_from_numpy(np.float32([1, 2]))  # which alone keeps the array
    assert bridge.to_numpy(outer._ortvalue).tolist() == [1, 2]


def test_mindspore_tensors_of_complex_are_shared_and_lazy_ones_refused() -> None:
    mindspore = alone.importorskip("mindspore")
    x = mindspore.Tensor(np.complex64([1, 2j]))
    assert bridge.from_dlpack(x, copy=False).tolist() == [1, 2j]
    lazy = mindspore.Tensor(
        shape=(2, 2), dtype=mindspore.float32, init=mindspore.common.initializer.One()
    )
    with pytest.raises(BufferError, match="init_data"):
        bridge.from_dlpack(lazy)


def test_tinygrad_tensors_of_bfloat16_and_nothing_are_read() -> None:
    tinygrad = pytest.importorskip("tinygrad")
    half = tinygrad.Tensor([0.0, 1.0, 2.0], dtype="bfloat16", device="PYTHON").realize()
    assert bridge.from_dlpack(half).dtype() == "bfloat16"
    assert bridge.from_dlpack(half).tolist() == [0, 1, 2]
    nothing = tinygrad.Tensor(np.zeros((0, 3), np.float32), device="NPY")
    assert bridge.from_dlpack(nothing).sizes() == (0, 3)


def test_openvino_bfloat16_is_read_and_packed_types_refused() -> None:
    openvino = pytest.importorskip("openvino")
    half = openvino.Tensor(openvino.Type.bf16, [2])
    assert bridge.from_dlpack(half).dtype().name == "bfloat16"
    with pytest.raises(BufferError, match="packs"):
        bridge.from_dlpack(openvino.Tensor(openvino.Type.u4, [2]))


def test_onnx_messages_are_read_and_strings_refused() -> None:
    onnx = pytest.importorskip("onnx")
    message = onnx.numpy_helper.from_array(np.float32([1, 2]))
    with bridge.audit() as log:
        assert bridge.to_torch(message).tolist() == [1, 2]
    assert log.copied_bytes == 8
    strings = onnx.helper.make_tensor("s", onnx.TensorProto.STRING, [1], [b"a"])
    for x, match in ((strings, "string_data"), (onnx.TensorProto(), "no element type")):
        with pytest.raises(BufferError, match=match):
            bridge.from_dlpack(x)
    # whether a message has its bytes, or makes them at each call, depends on protobuf
    assert bridge.from_dlpack(message).readonly or message.raw_data is not message.raw_data


def test_frames_of_pyav_name_their_planes() -> None:
    av = pytest.importorskip("av")
    frame = av.VideoFrame(16, 16, "gray")
    with pytest.raises(TypeError, match=r"planes\[0\]"):
        bridge.from_dlpack(frame)
    assert bridge.from_dlpack(frame.planes[0]).numel() == frame.planes[0].buffer_size


@pytest.mark.parametrize("library_name", ["PIL", "h5py", "zarr", "blosc2", "dask"])
def test_objects_that_make_new_memory_at_each_call_are_copied(
    library_name: str, tmp_path: Any
) -> None:
    library = pytest.importorskip(library_name)
    values = np.arange(4, dtype=np.uint8).reshape(2, 2)
    if library_name == "PIL":
        from PIL import Image

        x = Image.fromarray(values)
    elif library_name == "h5py":
        x = library.File(tmp_path / "x.h5", "w").create_dataset("a", data=values)
    elif library_name == "zarr":
        x = library.array(values)
    elif library_name == "blosc2":
        x = library.asarray(values)
    else:
        import dask.array

        x = dask.array.from_array(values)
    with bridge.audit() as log:
        assert bridge.to_torch(x).tolist() == values.tolist()
        assert bridge.asarray(x).tolist() == values.tolist()
    assert [record.nbytes for record in log.records if record.copied] == [4, 4]
    with pytest.raises(BufferError):
        bridge.from_dlpack(x, copy=False)
    with bridge.no_copy(), pytest.raises(BufferError):
        bridge.asarray(x)


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"polars is needed here.*pip install polars"):
        bridge.convert(np.ones(3), "polars")


def test_a_library_that_does_not_load_is_not_said_to_be_absent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mindspore.py").write_text("raise ImportError('Made for another system.')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mindspore", raising=False)
    with pytest.raises(ImportError, match=r"cannot be imported: Made for another system\.$"):
        bridge.convert(np.ones(3), "mindspore")
