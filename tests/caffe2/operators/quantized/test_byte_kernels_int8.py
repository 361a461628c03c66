# SPDX-License-Identifier: Apache-2.0
"""Int8 arithmetic in one pass is that of int64, to the bit."""

from __future__ import annotations

import pytest
import torch

from bridge.caffe2.operators.quantized import byte_kernels
from bridge.caffe2.operators.quantized.int8_operator import floats_of, multiplier_of, rescaled


def by_float32(sums, bias, scale, zero_point, lowest):
    return rescaled(sums, bias, multiplier_of(scale, 1.0, 1.0), zero_point, lowest)


def by_int64(sums, bias, scale, zero_point, lowest):
    return by_float32(sums.double(), bias, scale, zero_point, lowest)


@pytest.mark.parametrize("scale", [0.99999994, 0.5, 0.25, 0.0123, 2.0**-20, 3e-9, 2.0**-32])
@pytest.mark.parametrize("zero_point", [0, 7, 255])
def test_float_sums_are_rescaled_as_whole_numbers(scale: float, zero_point: int) -> None:
    generator = torch.Generator().manual_seed(0)
    largest = 2**24 - 1
    sums = torch.randint(-largest, largest + 1, (500, 6), generator=generator).float()
    sums[:200] = sums[:200] // 2**15  # halves and small numbers
    sums[0] = torch.tensor([largest, -largest, 0, 1, -1, 2])
    for bias in ([0, 1, -1, 5, 2**25 - 1, 1 - 2**25], [0, 0, 0, 0, 0, 2**31 - 1]):
        biases = torch.tensor(bias, dtype=torch.int32)
        found = by_float32(sums, biases, scale, zero_point, zero_point)
        expected = by_int64(sums, biases, scale, zero_point, zero_point)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    "sizes", [(0, 3), (3, 0), (1, 1), (400, 3), (17, 64), (3, 1024), (2, 1500)]
)
def test_rows_of_any_number_and_length_are_rescaled(sizes: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    sums = torch.randint(-100_000, 100_000, sizes, generator=generator).float()
    biases = torch.arange(sizes[1], dtype=torch.int32) - 700
    found = by_float32(sums, biases, 0.00123, 128, 0)
    torch.testing.assert_close(found, by_int64(sums, biases, 0.00123, 128, 0), rtol=0, atol=0)


@pytest.mark.parametrize("shift", [0, 1, 14, 21, 30])
def test_scaled_bytes_are_added_as_int64(shift: int) -> None:
    a, b = (torch.arange(256, dtype=torch.uint8).roll(7 * i) for i in range(2))
    by, start = (2**22 - 1, 2**21 + 3), -(128 * (2**22 - 1) + 100 * (2**21 + 3))
    found = a.long() * by[0] + b.long() * by[1] + start
    rounded = torch.sign(found) * ((found.abs() + (1 << shift >> 1)) >> shift)
    expected = (rounded + 3).clamp(1, 255).to(torch.uint8)
    y = torch.empty(256, dtype=torch.uint8)
    byte_kernels.add_scaled(y, a, b, 256, *by, start, shift, 3, 1)
    torch.testing.assert_close(y, expected, rtol=0, atol=0)


def test_bytes_become_floats_less_the_zero_point() -> None:
    x = torch.arange(256, dtype=torch.uint8)
    torch.testing.assert_close(floats_of(x, 100), x.float() - 100, rtol=0, atol=0)
