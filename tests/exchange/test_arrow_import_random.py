# SPDX-License-Identifier: Apache-2.0
"""Random Arrow structures, most of them broken: a tensor, or an error of one line, and no crash."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import bridge
from tests.helpers.arrow_producer import (
    DeviceProducer,
    Producer,
    StreamProducer,
    Struct,
    array,
    metadata,
    schema,
)
from tests.helpers.isolate import isolated

MEMORY = np.full(1 << 12, 255, np.uint8)
# Lengths that the memory has, and lengths that no memory has.
LENGTHS = (0, 1, 3, 5, 5, -1, -5, 1 << 62, (1 << 63) - 1, 1 << 57, -(1 << 63))
NUMBERS = (b"c", b"C", b"s", b"S", b"i", b"I", b"l", b"L", b"e", b"f", b"g", b"b")
FORMATS = (
    *(b"n", b"+s", b"+w:2", b"+w:0", b"+w:-1", b"+w:", b"+w:99999999999999999999", b"+w:2x"),
    *(b"+l", b"+us:0,1", b"+r", b"u", b"vz", b"w:4", b"d:5,2", b"tss:", b"", b"x", b"\xff\xfe"),
    *(b"+", b"ff", b"a" * 1000, None),
)
SHAPE = b"arrow.fixed_shape_tensor"
METADATA = (
    metadata(name=b"arrow.bool8"),
    *(
        metadata(name=SHAPE, metadata=text)
        for text in (b'{"shape":[2]}', b'{"shape":[1,2],"permutation":[1,0]}', b'{"shape":', b"[]")
    ),
    metadata(name=SHAPE, metadata=b'{"shape":[2],"permutation":[0,0]}'),
    b"\xff\xff\xff\xff",
    b"\x01\x00\x00\x00\xff\xff\xff\xff",
    b"\x00\x00\x00\x00",
)


class Maker:
    """Makes structures, and knows the children of each schema."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.children: dict[int, list[Any]] = {}
        self.made: list[Struct] = []

    def rarely(self, chance: float = 0.05) -> bool:
        return self.random.random() < chance

    def schema(self, depth: int = 0) -> Struct:
        text = self.random.choice(NUMBERS if self.rarely(0.5) else (b"+w:2", b"+s", *FORMATS))
        lists = text is not None and text.startswith(b"+w")
        count = 1 if lists else self.random.choice((0, 1, 2, 3)) if text == b"+s" else 0
        children: list[Any] = [self.schema(depth + 1) for _ in range(count if depth < 3 else 0)]
        if children and self.rarely():
            children[0] = None
        fields: dict[str, Any] = {}
        if self.rarely(0.3):
            # (the string ends where its lengths say, in memory that is longer)
            fields["metadata"] = self.random.choice(METADATA) + bytes(64)
        if self.rarely():
            fields["n_children"] = self.random.choice((-1, 0, 1, 2, 1 << 40, 1 << 62))
        if self.rarely(0.03):
            fields["children"] = None
        if self.rarely(0.03):
            fields["dictionary"] = schema(b"u")
        made = schema(text, *children, release=not self.rarely(0.03), **fields)
        self.children[id(made)] = children
        self.made.append(made)
        return made

    def array(self, of: Struct, length: int = 5) -> Struct:
        text = of.value.format or b"i"
        wide = text.startswith(b"+w") or text == b"+s"
        count = self.random.choice((0, 1, 3)) if self.rarely() else 1 if wide else 2
        buffers: list[Any] = [None if self.rarely(0.7) else MEMORY, *[MEMORY] * 3][:count]
        if len(buffers) > 1 and self.rarely():
            buffers[1] = self.random.choice((None, MEMORY.ctypes.data + 1))
        if self.rarely(0.2):
            length = self.random.choice(LENGTHS)
        inside = 10 if 0 < length < 100 and text != b"+s" else length
        children: list[Any] = [
            None if child is None or self.rarely(0.03) else self.array(child, inside)
            for child in self.children[id(of)]
        ]
        fields: dict[str, Any] = {"children": children[: -1 if self.rarely(0.03) else None]}
        if self.rarely(0.15):
            fields["null_count"] = self.random.choice((-1, 0, 1, -2, 6, 1 << 62, -(1 << 63)))
        if self.rarely(0.15):
            fields["offset"] = self.random.choice(LENGTHS)
        if self.rarely():
            fields["n_children"] = self.random.choice((-1, 0, 1, 2, 1 << 40, 1 << 62))
        if self.rarely():
            fields["n_buffers"] = self.random.choice((-1, 0, 1, 2, 3, 1 << 40))
        if self.rarely(0.03):
            fields["dictionary"] = array(1, None, MEMORY)
        made = array(length, *buffers, release=not self.rarely(0.03), **fields)
        self.made.append(made)
        return made

    def producer(self) -> Any:
        kind = self.schema()
        held = self.array(kind)
        made: Any
        if self.rarely(0.6):
            made = Producer(kind, held)
        elif self.rarely(0.5):
            more = [self.array(kind)] if self.rarely(0.2) else []
            made = StreamProducer(kind, [held, *more], self.random.choice((0, 0, 5, -1)))
        else:
            kinds = (1, 1, 1, 2, 4, 10, 13, 99, 0, -1, (1 << 31) - 1)
            made = DeviceProducer(
                kind,
                held,
                device_type=self.random.choice(kinds),
                device_id=self.random.choice((-1, 0, 1, -5, 1 << 40)),
            )
        if self.rarely(0.4):
            made.columns = ("a", "b")
        return made


@pytest.mark.parametrize("seed", range(4))
@isolated
def test_random_structures_are_read_or_refused_and_released_once(seed: int) -> None:
    tensors = 0
    for case in range(200):
        maker = Maker(1000 * seed + case)
        producer = maker.producer()
        copy = maker.random.choice((None, True, False))
        door = maker.random.choice((bridge.from_dlpack, bridge.to_numpy, bridge.asarray))
        refusal = _refusal(door, producer, copy)
        if refusal is None:
            tensors += 1
        else:
            assert "\n" not in refusal
            assert len(refusal) > 20
        assert max(made.releases for made in maker.made) <= 1
    assert tensors > 10


def _refusal(door: Any, producer: Any, copy: bool | None) -> str | None:
    """Return the text of the BufferError; None if there was none."""
    try:
        door(producer, copy=copy).tolist()
    except BufferError as error:
        return str(error)
    return None
