# SPDX-License-Identifier: Apache-2.0
"""Elementwise operators by our own kernels give what torch gives, to the bit."""

from __future__ import annotations

import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.elementwise import small_kernels

SPECIAL = [0.0, -0.0, 1.5, -2.5, float("inf"), -float("inf"), float("nan"), 1e-42]


def operands(n):
    a = torch.tensor(SPECIAL).repeat(n)[:n]
    return a, a.flip(0) * 3


@pytest.mark.parametrize("n", [0, 1, 7, 256])
@pytest.mark.parametrize(("sign", "by_torch"), [(1, torch.add), (-1, torch.sub), (0, torch.mul)])
def test_binary_kernels_agree_with_torch(sign, by_torch, n) -> None:
    a, b = operands(n)
    expected = by_torch(a, b)
    y = torch.empty(n)
    for out in (y, a):  # in place at last
        assert small_kernels.combine(a, b, out, sign, n) is out
        torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("n", [0, 1, 7, 256])
def test_relu_agrees_with_torch(n) -> None:
    x, _ = operands(n)
    expected = torch.relu(x)
    y = torch.empty(n)
    for out in (y, x):
        small_kernels.relu(x, out, n)
        torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 3, 5), (1, 4, 16), (3, 2, 0)])
@pytest.mark.parametrize("by_torch", [torch.add, torch.mul])
def test_the_kernel_by_channel_agrees_with_torch(by_torch, shape) -> None:
    n = shape[0] * shape[1] * shape[2]
    x = torch.tensor(SPECIAL).repeat(n)[:n].reshape(shape)
    b = torch.arange(shape[1]) - 1.5
    expected = by_torch(x, b.view(-1, 1))
    for out in (torch.empty(shape), x):
        small_kernels.by_channel(x, b, out, *shape, by_torch is torch.add)
        torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(out.signbit(), expected.signbit())


def test_other_numbers_of_elements_are_refused() -> None:
    x, y = torch.ones(3), torch.ones(4)
    with pytest.raises(EnforceNotMet, match="was to have 3 elements"):
        small_kernels.relu(x, y, 3)
    with pytest.raises(EnforceNotMet, match="was to have 4 elements"):
        small_kernels.total(y, [x], 4)


@pytest.mark.parametrize("n", [0, 1, 7, 256])
def test_gradients_of_activations_agree_with_torch(n) -> None:
    y, dy = operands(n)
    zero = torch.zeros(())
    for function, expected in (
        ("relu", torch.where(y > 0, dy, zero)),
        ("sigmoid", dy * (y * (1 - y))),
        ("tanh", dy * (1 - y * y)),
    ):
        found = small_kernels.gradient(torch.empty(n), y, dy, function, 0.0, n)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    expected = torch.where(y >= 0, dy, dy * 0.25)
    small_kernels.gradient(dy, y, dy, "leaky_relu", 0.25, n)  # in place
    torch.testing.assert_close(dy, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("n", [0, 1, 7, 256, 4001])
def test_tanh_is_within_three_units_of_the_last_place(n) -> None:
    x = torch.cat([operands(8)[0], torch.linspace(-12, 12, 4001)])[:n]
    expected = torch.tanh(x.double())
    y = torch.empty(n)
    for out in (y, x):
        assert small_kernels.tanh(x, out, n) is out
        torch.testing.assert_close(out.double(), expected, rtol=4e-7, atol=1e-38, equal_nan=True)


@pytest.mark.parametrize("n", [0, 1, 7, 256])
def test_a_sum_of_several_agrees_with_torch(n) -> None:
    a, b = operands(n)
    expected = a + b + b + a
    y = torch.empty(n)
    for out in (y, a):
        assert small_kernels.total(out, [a, b, b, a.clone()], n) is out
        torch.testing.assert_close(out, expected, rtol=0, atol=0, equal_nan=True)
