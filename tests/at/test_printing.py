# SPDX-License-Identifier: Apache-2.0
"""The repr of an at.Tensor: as NumPy prints an array, a large one by its edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bridge
from bridge import at
from bridge.at.printing import torch_text


def test_rows_stand_on_lines_of_their_own() -> None:
    x = at.tensor([[1.5, 2.0], [3.0, 4.25]])
    assert repr(x) == "at.Tensor([[1.5 , 2.  ],\n           [3.  , 4.25]], dtype=float32)"
    assert str(x) == f"{x}" == repr(x)


def test_digits_are_as_many_as_the_type_has() -> None:
    assert repr(at.tensor([0.1])) == "at.Tensor([0.1], dtype=float32)"
    assert repr(at.tensor([0.1], dtype="float64")) == "at.Tensor([0.1], dtype=float64)"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int8"])
def test_a_large_tensor_shows_its_edges_and_sizes(dtype: str) -> None:
    x = at.zeros(50, 60).to(dtype)
    x[0, 0] = x[-1, -1] = 2.0
    lines = repr(x).splitlines()
    assert lines[0].startswith("at.Tensor([[2")
    assert "..." in lines[0]
    assert lines[3].strip() == "...,"
    assert repr(x).endswith(f"sizes=[50, 60], dtype={dtype})")


def test_printing_follows_the_print_options_of_numpy() -> None:
    with np.printoptions(threshold=3, edgeitems=1, precision=1):
        assert repr(at.tensor([1.25, 2.0, 3.0, 4.0])) == (
            "at.Tensor([1.2, ..., 4. ], sizes=[4], dtype=float32)"
        )


def test_type_device_and_readonly_get_a_line_of_their_own_in_a_full_line() -> None:
    x = bridge.from_dlpack(bytes(range(100, 112)))
    assert repr(x).splitlines()[-1] == "          dtype=uint8, readonly)"


def test_nothing_is_copied_to_print_a_view_of_huge_strides() -> None:
    x = at.zeros(1).expand(2**40)
    assert "[0., 0., 0., ..., 0., 0., 0.]" in repr(x)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2, torch.complex32, torch.int16])
@pytest.mark.parametrize("shape", [(2, 3), (50, 60), (7, 1000), (5000,), ()])
def test_types_that_numpy_lacks_are_printed_as_torch_prints_them(
    dtype: torch.dtype, shape: tuple[int, ...]
) -> None:
    t = torch.arange(float(np.prod(shape))).reshape(shape).remainder(7).to(dtype)
    plain = t.to(torch.complex64 if dtype.is_complex else torch.float32)
    if not dtype.is_floating_point and not dtype.is_complex:
        plain = t
    tail = f", dtype={plain.dtype})".replace("torch.", "")
    assert "at.Tensor(" + torch_text(t, tail) == repr(bridge.from_dlpack(plain))
