# SPDX-License-Identifier: Apache-2.0
"""`round` and `divmod` of at.Tensors, as of Python's numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bridge import at

NUMBERS = [0, 1, 4, 5, 6, 14, 15, 25, 49, 51, 95, 99, -1, -5, -15, -25, -96]


@pytest.mark.parametrize("ndigits", [None, 0, 1, -1, -2, -30])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_integers_round_as_in_python_and_are_copied(dtype: str, ndigits: int | None) -> None:
    x = at.tensor(NUMBERS).to(dtype)
    found = round(x, ndigits)
    assert found.dtype == dtype
    assert found.tolist() == [round(number, ndigits) for number in NUMBERS]
    assert found.data_ptr() != x.data_ptr()


@pytest.mark.parametrize("ndigits", [0, 2, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_floats_round_as_in_numpy(dtype: str, ndigits: int) -> None:
    values = np.array([0.5, 1.5, -2.5, 3.14159, 271.828]).astype(dtype) * (
        1 + 2j if dtype == "complex128" else 1
    )
    found = round(at.tensor(values), ndigits)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.numpy(), np.round(values, ndigits), rtol=1e-6)


def test_bools_round_to_themselves() -> None:
    assert round(at.tensor([True, False]), 1).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_divmod_agrees_with_python(dtype: str) -> None:
    numbers = [7, -7, 8, 0]
    x = at.tensor(numbers).to(dtype)
    for by in (3, -2):
        quotient, rest = divmod(x, by)
        assert [*zip(quotient.tolist(), rest.tolist(), strict=True)] == [
            divmod(number, by) for number in numbers
        ]
    quotient, rest = divmod(7, x[:3])
    assert [*zip(quotient.tolist(), rest.tolist(), strict=True)] == [
        divmod(7, number) for number in numbers[:3]
    ]
    for other in (torch.tensor(numbers)[:3], np.array(numbers)[:3], x[:3]):
        assert [part.tolist() for part in divmod(x[:3] * 2, other)] == [[2, 2, 2], [0, 0, 0]]


def test_divmod_refuses_an_operand_that_is_not_a_number() -> None:
    with pytest.raises(TypeError, match="unsupported operand"):
        divmod(at.ones(2), "text")
    with pytest.raises(TypeError, match="unsupported operand"):
        divmod([], at.ones(2))
