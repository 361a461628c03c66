# SPDX-License-Identifier: Apache-2.0
"""at's tensors are float32 on the CPU, whatever defaults and modes of torch a program has set."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at
from tests.helpers.torch_settings import SETTINGS

MAKE: dict[str, Callable[[], at.Tensor]] = {
    "arange": lambda: at.arange(3),
    "arange of floats": lambda: at.arange(0, 1, 0.5),
    "as_tensor": lambda: at.as_tensor([1.5, 2]),
    "as_tensor of an array": lambda: at.as_tensor(np.array([1.5])),
    "asarray": lambda: at.asarray([[1.5], [2.5]]),
    "bartlett_window": lambda: at.bartlett_window(4),
    "blackman_window": lambda: at.blackman_window(4),
    "bridge.asarray": lambda: bridge.asarray([1.5]),
    "eye": lambda: at.eye(2),
    "full": lambda: at.full((2,), 1.5),
    "hamming_window": lambda: at.hamming_window(4),
    "hann_window": lambda: at.hann_window(4),
    "hann_window of a type": lambda: at.hann_window(4, dtype="float64"),
    "kaiser_window": lambda: at.kaiser_window(4),
    "linspace": lambda: at.linspace(0, 1, 5),
    "linspace of complex": lambda: at.linspace(0, 1j, 5),
    "linspace of tensors": lambda: at.linspace(at.tensor(0), at.tensor(1), 5),
    "logspace": lambda: at.logspace(0, 1, 5),
    "normal": lambda: at.normal(0.0, 0.0, (2,)),
    "normal of tensors": lambda: at.normal(at.zeros(2), at.zeros(2)),
    "ones": lambda: at.ones(2),
    "rand": lambda: at.rand(2) * 0,
    "randint": lambda: at.randint(1, (3,)),
    "randn": lambda: at.randn(2) * 0,
    "randperm": lambda: at.randperm(1),
    "scalar_tensor": lambda: at.scalar_tensor(3),
    "tensor": lambda: at.tensor([1.5, 2]),
    "tensor of complex": lambda: at.tensor([1j, 2, 0.5]),
    "tensor of ints": lambda: at.tensor([[1], [2]]),
    "tensor of none": lambda: at.tensor([]),
    "tensor of NumPy's": lambda: at.tensor([np.float64(1.5)]),
    "tril_indices": lambda: at.tril_indices(3, 3),
    "zeros": lambda: at.zeros(2),
    "zeros_like": lambda: at.zeros_like(at.ones(2)),
    "number // tensor": lambda: 7.5 // at.tensor([2.0, 3.0]),
    "tensor[list]": lambda: at.arange(5)[[1, 2]],
    "tensor[mask]": lambda: at.arange(5)[at.arange(5) > 2],
    "copy_": lambda: at.zeros(3).copy_([1.0, 2, 3]),
    "round": lambda: round(at.tensor([15, 7]), -1),
}


@pytest.mark.parametrize("mode", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_factories_give_the_same_in_every_mode_of_torch(
    make: Callable[[], at.Tensor], mode: Callable[[], AbstractContextManager[Any]]
) -> None:
    expected = make()
    with mode():
        found = make()
    assert (found.dtype, found.device) == (expected.dtype, "cpu")
    assert found.tolist() == expected.tolist()
    # and is written later like any other, by torch too
    found.add_(1)
    found.to_torch().mul_(2)
    assert found.tolist() == ((expected + 1) * 2).tolist()


def test_a_type_or_device_that_the_caller_names_goes_before_the_defaults() -> None:
    with SETTINGS["meta"](), SETTINGS["float64"]():
        assert at.linspace(0, 1, 3, dtype="float16").dtype == "float16"
        assert at.hann_window(3, dtype=torch.float32, device="cpu").dtype == "float32"
        given = torch.ones(2, device="cpu", dtype=torch.int8)
        assert at.as_tensor(given) is given
        out = torch.zeros(3, dtype=torch.float16, device="cpu")
        assert at.linspace(0, 1, 3, out=out) is out
    assert out.tolist() == [0.0, 0.5, 1.0]
