# SPDX-License-Identifier: Apache-2.0
"""The from/to table of docs/sharing.md: each row is tried with objects of its kind."""

from __future__ import annotations

import array
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2

PAGE = (Path(__file__).parents[1] / "docs" / "sharing.md").read_text(encoding="utf-8")


class Producer:
    """An object that has `__dlpack__` and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> object:
        """Hand out NumPy's capsule."""
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Say where: the CPU."""
        return self._array.__dlpack_device__()


def frozen() -> np.ndarray:
    x = np.arange(3.0)
    x.flags.writeable = False
    return x


def misaligned() -> np.ndarray:
    return np.zeros(25, np.uint8)[1:].view(np.float64)


def negated() -> torch.Tensor:
    return torch.tensor([1 + 2j, 3 - 4j]).conj().imag


def jax_array() -> Any:
    return pytest.importorskip("jax.numpy").arange(3.0)


def tensorflow_tensor() -> Any:
    return pytest.importorskip("tensorflow").range(3.0)


def arrow() -> Any:
    return pytest.importorskip("pyarrow")


# A row's first cell, and makers of what it speaks of.
MAKERS: dict[str, tuple[Callable[[], Any], ...]] = {
    "`at.Tensor`, `caffe2.Tensor`": (
        lambda: at.arange(3),
        lambda: caffe2.Tensor([3], [1.0, 2.0, 3.0]),
    ),
    "torch tensor": (lambda: torch.arange(3),),
    "torch tensor that requires grad": (lambda: torch.ones(3, requires_grad=True),),
    "torch's lazy conjugate or negative bit": (lambda: torch.tensor([1 + 2j]).conj(), negated),
    "NumPy array": (lambda: np.arange(3), lambda: np.arange(6.0).reshape(2, 3).T),
    "read-only NumPy array, `bytes`": (frozen, lambda: b"abc"),
    "JAX array, TensorFlow tensor": (jax_array, tensorflow_tensor),
    "negative strides": (lambda: np.arange(3.0)[::-1], lambda: memoryview(bytearray(3))[::-1]),
    "foreign byte order, misaligned": (
        lambda: np.arange(3, dtype=np.dtype("i4").newbyteorder()),
        misaligned,
    ),
    "`bytearray`, `memoryview`, `array.array`": (
        lambda: bytearray(3),
        lambda: memoryview(bytearray(3)),
        lambda: array.array("d", [1.0, 2.0]),
    ),
    "Arrow array": (lambda: arrow().array([1.0, 2.0]),),
    "Arrow's booleans, tables of several columns": (
        lambda: arrow().array([True, False]),
        lambda: arrow().table({"a": [1], "b": [2]}),
    ),
    "any other object with `__dlpack__`": (lambda: Producer(np.arange(3)),),
    "sparse, meta, quantized, object and string arrays": (
        lambda: torch.eye(2).to_sparse(),
        lambda: torch.empty(2, device="meta"),
        lambda: np.array([object()]),
        lambda: np.array(["a"]),
    ),
}
COLUMNS: tuple[tuple[Callable[..., Any], type], ...] = (
    (bridge.from_dlpack, at.Tensor),
    (bridge.to_torch, torch.Tensor),
    (bridge.to_numpy, np.ndarray),
)


def rows() -> dict[str, list[str]]:
    """Read the table: first cell -> the other three, without the footnotes' numbers."""
    found = {}
    for line in PAGE.split("| from ↓")[1].split("\n\n")[0].splitlines()[2:]:
        first, *others = (re.sub(r" [¹²³⁴]", "", c).strip() for c in line.strip("| ").split("|"))
        found[first] = others
    return found


CASES = [
    pytest.param(cell, maker, convert, native, id=f"{first}-{number}-to-{native.__module__}")
    for first, cells in rows().items()
    for number, maker in enumerate(MAKERS[first])
    for cell, (convert, native) in zip(cells, COLUMNS, strict=True)
]


def starts(tensor: Any) -> int:
    """Give the address of the first element, whichever kind of tensor it is."""
    if isinstance(tensor, np.ndarray):
        return int(tensor.ctypes.data)
    if isinstance(tensor, caffe2.Tensor):
        return tensor.raw_data()
    if isinstance(tensor, (torch.Tensor, at.Tensor)):
        return tensor.data_ptr()
    if isinstance(tensor, Producer):
        return starts(tensor._array)
    if hasattr(tensor, "__arrow_c_stream__"):  # a table
        tensor = tensor.column(0).chunk(0)
    if hasattr(tensor, "__arrow_c_array__"):
        return int(tensor.buffers()[1].address)
    return starts(np.asarray(memoryview(tensor)))


@pytest.mark.filterwarnings("ignore:.*quant.*:DeprecationWarning")
@pytest.mark.parametrize(("cell", "maker", "convert", "native"), CASES)
def test_each_cell_is_true(
    cell: str, maker: Callable[[], Any], convert: Callable[..., Any], native: type
) -> None:
    source = maker()
    if isinstance(source, native) and not issubclass(native, at.Tensor):
        # What is there already is returned as it is, whatever the row says of others.
        assert convert(source) is source
        return
    if cell.startswith("error"):
        message = "detach" if "detach" in cell else "."
        with pytest.raises(BufferError, match=message):
            convert(source)
        return
    result = convert(source)
    assert isinstance(result, native)
    if cell.startswith("copied"):
        assert starts(result) != starts(source)
        with pytest.raises(BufferError):
            convert(source, copy=False)
        return
    assert cell.startswith(("shared", "the same object")), cell
    assert starts(result) == starts(source)
    assert starts(convert(source, copy=True)) != starts(source)
    if "read-only" in cell:
        assert result.readonly if isinstance(result, at.Tensor) else not result.flags.writeable


def test_a_copy_has_the_values_of_its_source() -> None:
    for source in (torch.tensor([1 + 2j]).conj(), negated()):
        assert bridge.from_dlpack(source).tolist() == source.tolist()
    for source in (np.arange(3.0)[::-1], misaligned()):
        assert bridge.to_torch(source).tolist() == source.tolist()


def test_read_only_is_shared_with_torch_on_request() -> None:
    source = frozen()
    assert starts(bridge.to_torch(source, writable=True)) == starts(source)
