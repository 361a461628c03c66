# SPDX-License-Identifier: Apache-2.0
"""Every library inside every other: values and derivatives are those of one library alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import bridge
from tests.functions.libraries import FUNCTIONS, OUTSIDE, by_torch, namespace
from tests.helpers import alone

INSIDE = ("torch", "jax", "tensorflow", "paddle")


@pytest.fixture(autouse=True)
def wide_jax() -> Iterator[None]:
    """Have JAX compute in 64 bits, as the others do here."""
    jax = alone.importorskip("jax")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def arrays() -> list[np.ndarray]:
    """Return a 4 × 5 and a 5 × 3 matrix of numbers in [-1, 1]."""
    random = np.random.default_rng(1)
    return [random.uniform(-1, 1, (4, 5)), random.uniform(-1, 1, (5, 3))]


@pytest.mark.parametrize("second", [False, True], ids=["first", "second"])
@pytest.mark.parametrize("outside", OUTSIDE)
@pytest.mark.parametrize("inside", INSIDE)
def test_derivatives_agree_with_one_library_alone(inside: str, outside: str, second: bool) -> None:
    n, torch = namespace(inside), namespace("torch")
    for name, make in FUNCTIONS.items() if second else [("product", FUNCTIONS["product"])]:
        expected = by_torch(make(torch), arrays(), second)
        found = OUTSIDE[outside](bridge.wrap(make(n), inside), arrays(), second)
        assert len(found) == len(expected)
        for mine, its in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("outside", ["torch", "jax", "tensorflow", "paddle", "numpy", "at"])
@pytest.mark.parametrize("inside", ["numpy", *INSIDE])
def test_values_come_back_as_the_callers_library(inside: str, outside: str) -> None:
    n = namespace(inside)
    alone.importorskip("numpy" if outside == "at" else outside)
    x, w = (bridge.convert(array, outside) for array in arrays())
    function = bridge.wrap(lambda x, w: {"y": n.matmul(x, w), "n": 5}, inside)
    result = function(x, w=w)
    assert type(result["y"]) is type(x)
    assert result["n"] == 5
    expected = arrays()[0] @ arrays()[1]
    np.testing.assert_allclose(bridge.to_numpy(result["y"]), expected, rtol=1e-12)


def test_tests_with_paddle_pass_in_a_process_of_their_own() -> None:
    assert alone.run_alone("paddle", __file__) > 20
