# SPDX-License-Identifier: Apache-2.0
"""``torch.save`` and ``torch.load`` under its safe default."""

from __future__ import annotations

import io
import pickle
from typing import Any

import pytest
import torch

import bridge
from bridge import at, c10, caffe2


def loaded(x: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])
@pytest.mark.parametrize(
    "dtype", ["float32", "int64", "uint8", "bool", "complex64", "bfloat16", "float8_e4m3fn"]
)
def test_tensors_of_numbers_are_loaded(wrap: Any, dtype: str) -> None:
    x = at.tensor([[0.0, 1.0, -2.0], [3.0, 300.0, 5.0]]).abs().to(dtype)
    found = loaded(wrap(x))
    assert type(found) is wrap
    assert (found.dtype, found.shape) == (dtype, (2, 3))
    assert bytes(at.Tensor(found).view("uint8")) == bytes(x.view("uint8"))


def test_tensors_of_other_states_and_strings_are_loaded() -> None:
    assert not loaded(at.Tensor()).defined()
    assert loaded(caffe2.Tensor([2, 3], "cpu")).sizes() == (2, 3)
    assert loaded(at.zeros(0, 3)).shape == (0, 3)
    assert loaded(at.tensor(5)).item() == 5
    assert loaded(at.arange(6).view(2, 3).t()).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert loaded(bridge.asarray(["a", b"\xff"])).tolist() == [b"a", b"\xff"]


def test_a_checkpoint_with_types_and_devices_is_loaded() -> None:
    x = at.ones(2)
    state = {"weights": [x, torch.ones(1)], "dtype": x.dtype, "device": x.device,
             "sizes": x.sizes(), "options": c10.dtype("int8").device("cpu")}  # fmt: skip
    found = loaded(state)
    assert found.keys() == state.keys()
    assert found["weights"][0].tolist() == [1.0, 1.0]
    assert found["dtype"] is x.dtype
    assert (found["device"], found["sizes"]) == ("cpu", (2,))
    assert found["options"] == state["options"]


class OwnTensor(at.Tensor):
    """Not one of the bridge's own classes."""


def test_other_classes_are_for_their_owners_to_allow() -> None:
    with pytest.raises(pickle.UnpicklingError, match="OwnTensor"):
        loaded(OwnTensor(at.ones(2)))
    with torch.serialization.safe_globals([OwnTensor]):
        assert type(loaded(OwnTensor(at.ones(2)))) is OwnTensor


def test_a_file_that_lies_is_refused() -> None:
    file = io.BytesIO()

    class Liar:
        def __reduce__(self) -> Any:
            rebuild, (cls, buffer, _, dtype) = at.ones(2).__reduce_ex__(3)
            return rebuild, (cls, buffer, (1 << 40,), dtype)

    torch.save(Liar(), file)
    file.seek(0)
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match="bytes"):
        torch.load(file, weights_only=True)
