# SPDX-License-Identifier: Apache-2.0
"""The doors through which others give the bridge structures: each takes bytes and must stay whole.

A door makes a structure of the bytes and gives it to the bridge, which takes it or refuses it by
the errors that are documented. Any other error, and a crash, is a fault; so is a value that
another reader of the same structure finds otherwise. `fuzz_door.py` draws the bytes guided by
coverage, `test_doors.py` by chance from the same first inputs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import bridge
from bridge import tf
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.serialize import serialize_chunks
from tests.fuzz import arrow, buffers, files, operators, producers, structures
from tests.fuzz.words import REFUSALS

_GOLDEN = Path(__file__).parents[1] / "golden"


def _random_like(n: int) -> list[bytes]:
    """Inputs of all kinds of bytes, for doors whose bytes are numbers."""
    steps = (1, 3, 7, 31, 64, 97, 128, 201)
    return [bytes((i * step + n * 13) % 256 for i in range(48)) for step in steps]


def _protos() -> list[bytes]:
    values: list[Any] = [
        np.arange(6.0).reshape(2, 3),
        np.arange(3, dtype=np.int8),
        np.float16([1, 2]),
        ["ab", "c"],
        [True],
        np.complex64([1j]),
    ]
    varints = b"\x08\x03\x12\x04\x12\x02\x08\x03\x3a\x03\x01\x02\x03"
    floats = b"\x08\x01\x12\x04\x12\x02\x08\x02\x2a\x08" + struct.pack("<2f", 1, 2)
    return [tf.make_tensor_proto(bridge.asarray(value)) for value in values] + [varints, floats]


def _chunks() -> list[bytes]:
    """Return messages of one blob, a tensor in parts and others, with a mark between."""
    blob, found = Blob(), []
    blob.feed(np.arange(6, dtype=np.float32))
    parts = [message for _, message in serialize_chunks(blob, "x", 2, "chunks", "x")]
    blob.feed(np.array([b"a", b"b"], object))
    text = [blob.serialize("x")]
    mark = b"MARK"
    for some in (parts, parts[::-1], parts[:2] + text, text + parts[1:], parts[:1] * 2):
        found.append(mark + mark.join(some))
    return found


def _commands() -> list[bytes]:
    """Return command lines with each kind of file."""
    kinds = [*files.seeds(), *operators.net_seeds()]
    return [bytes([line, 0, 0, 0]) + one for line in range(8) for one in kinds]


# A door returns False where it refused what it was given; None is that it was taken.
DOORS: dict[str, tuple[Callable[[bytes], Any], Callable[[], list[bytes]]]] = {
    "capsule": (structures.capsule, lambda: _random_like(0)),
    "table": (structures.table, lambda: _random_like(6)),
    "exchange_table": (structures.exchange_table, lambda: _random_like(7)),
    "array_interface": (structures.array_interface, lambda: _random_like(1)),
    "array_struct": (structures.array_struct, lambda: _random_like(8)),
    "cuda_interface": (structures.cuda_interface, lambda: _random_like(9)),
    "producer": (producers.producer, lambda: _random_like(11)),
    "buffer": (buffers.buffer, lambda: _random_like(2)),
    "arrow_array": (arrow.arrow_structures, lambda: _random_like(3)),
    "tensor_proto": (files.tensor_proto, _protos),
    "net": (operators.net, operators.net_seeds),
    "operators": (operators.operators, lambda: _random_like(10)),
    "minidb": (files.minidb, lambda: [(_GOLDEN / "checkpoint.minidb").read_bytes()]),
    "predictor": (files.predictor, lambda: [(_GOLDEN / "predictor.mdl").read_bytes()]),
    "chunks": (files.chunks, _chunks),
    "convert": (
        files.convert,
        lambda: [bytes([i]) + one for i in range(3) for one in files.seeds()],
    ),
    "pickled": (files.pickled, lambda: _random_like(4)),
    "shell": (files.shell, _commands),
}


def enter(name: str, data: bytes) -> bool:
    """Pass bytes to a door; return whether it took them. Raises undocumented errors."""
    function, _ = DOORS[name]
    try:
        return function(data) is not False
    except REFUSALS:
        return False
