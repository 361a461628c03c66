# SPDX-License-Identifier: Apache-2.0
"""The inputs that are kept, as each covers code that no other does: one file for each door.

A file is compressed by zlib: for each input its length, as four bytes, and its bytes. What a long
run of `tools/fuzz.sh` found is kept, beside what was, by::

    python -m tests.fuzz.corpus net .venv-fuzz/corpus-net

libFuzzer has then replaced inputs by smaller ones that cover the same.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path

_FOLDER = Path(__file__).parent / "corpus"
MOST = 1200  # inputs of a door
MOST_BYTES = 1_000_000  # before they are compressed


def kept(name: str) -> list[bytes]:
    """Return the inputs that are kept for a door."""
    path = _FOLDER / f"{name}.bin"
    data = zlib.decompress(path.read_bytes()) if path.exists() else b""
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at)
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    return found


def keep(name: str, inputs: Iterable[bytes]) -> None:
    """Keep the smallest of the inputs of a door, and of those that are kept."""
    chosen: list[bytes] = []
    for one in sorted({*kept(name), *inputs}, key=lambda one: (len(one), one)):
        if len(chosen) < MOST and sum(map(len, chosen)) + len(one) <= MOST_BYTES:
            chosen.append(one)
    data = b"".join(struct.pack("<I", len(one)) + one for one in chosen)
    _FOLDER.mkdir(exist_ok=True)
    (_FOLDER / f"{name}.bin").write_bytes(zlib.compress(data, 9))
    print(f"{name}: {len(chosen)} inputs, {len(data)} bytes")


if __name__ == "__main__":
    keep(sys.argv[1], [path.read_bytes() for path in Path(sys.argv[2]).iterdir()])
