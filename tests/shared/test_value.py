# SPDX-License-Identifier: Apache-2.0
"""Tensors of every library go in, and come out as any other's in another process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2
from tests.helpers.isolate import isolated
from tests.helpers.sharing import ended, python

VALUES = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def source(library: str) -> Any:
    array = np.array(VALUES, "float32")
    if library == "numpy":
        return array
    if library == "strided":
        return np.ascontiguousarray(array.T).T
    if library == "reversed":
        return array[::-1, ::-1].copy()[::-1, ::-1]
    if library == "big endian":
        return array.astype(">f4")
    if library == "broadcast":
        return np.broadcast_to(array[0], (2, 3))
    if library == "at":
        return bridge.from_dlpack(array)
    if library == "caffe2":
        return caffe2.Tensor(bridge.from_dlpack(array))
    if library == "buffer":
        return memoryview(array)
    if library == "pyarrow":
        pyarrow = pytest.importorskip("pyarrow")
        return pyarrow.FixedShapeTensorArray.from_numpy_ndarray(array)
    pytest.importorskip(library)
    return bridge.convert(array, library)


LIBRARIES = [
    "numpy", "strided", "reversed", "big endian", "broadcast", "at", "caffe2", "buffer", "torch",
    "jax", "tensorflow", "paddle", "tvm_ffi", "polars", "pyarrow",
]  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
@isolated
def test_each_library_gives_tensors_to_a_segment(library: str) -> None:
    x = source(library)
    expected = [VALUES[0]] * 2 if library == "broadcast" else VALUES
    with bridge.share(x) as shared, bridge.share({"a": [x]}) as tree:
        assert shared.value.tolist() == expected
        assert shared.value.is_contiguous() and shared.value.dtype == "float32"
        assert not shared.value.readonly
        assert bridge.attach(tree.path)["a"][0].tolist() == expected


@pytest.mark.parametrize("library", ["torch", "numpy", "jax", "tensorflow"])
def test_each_library_gets_the_tensor_in_another_process(library: str) -> None:
    pytest.importorskip(library)
    with bridge.share(np.array(VALUES, "float32"), name="t-out", writable=library == "torch"):
        process = python(
            "import sys, warnings\nwarnings.simplefilter('ignore')\nimport bridge\n"
            "x = bridge.attach('t-out')\ny = bridge.convert(x, sys.argv[1], copy=False)\n"
            "print(type(y).__module__.split('.')[0], bridge.to_numpy(y).tolist(),"
            " bridge.shares_memory(x, y))",
            library,
        )
        out = ended(process, may_complain=True)  # TensorFlow does
    assert out.splitlines()[-1].split(" ", 1)[1] == f"{VALUES} True"


def test_gradients_survive_in_the_error() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(BufferError, match=r"at \['w'\].*detach"):
        bridge.share({"w": torch.nn.Parameter(torch.ones(2))})


def test_a_state_dict_is_shared_and_loaded() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    model[1].weight.data = model[1].weight.data.clone()
    with bridge.share(model.state_dict()) as shared:
        found = bridge.attach(shared.path)
        assert list(found) == list(model.state_dict())
        for key, value in model.state_dict().items():
            assert found[key].tolist() == value.tolist()
        other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
        state = {key: bridge.to_torch(value, writable=True) for key, value in found.items()}
        other.load_state_dict(state, assign=True)
        assert bridge.shares_memory(other[0].weight, shared.value["0.weight"])
        del other, state, found


def test_tensors_without_elements_or_dimensions_are_shared() -> None:
    for x in (np.zeros((0,)), np.zeros((3, 0, 2), "int8"), np.array(5.5), np.zeros((1,) * 60)):
        with bridge.share(x) as shared:
            assert shared.value.shape == x.shape and shared.nbytes == x.nbytes
            assert bridge.attach(shared.path).tolist() == x.tolist()
    with bridge.share(at.zeros(2, 0)) as shared, bridge.share(shared.value) as again:
        assert again.value.shape == (2, 0)
