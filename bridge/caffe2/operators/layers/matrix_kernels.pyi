# SPDX-License-Identifier: Apache-2.0
def fully_connected(
    x: int, w: int, b: int, y: int, rows: int, depth: int, columns: int
) -> None: ...
