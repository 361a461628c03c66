# SPDX-License-Identifier: Apache-2.0
def rescale(
    sums: int, n: int, multiplier: int, shift: int, zero_point: int, lowest: int, y: int
) -> None: ...
