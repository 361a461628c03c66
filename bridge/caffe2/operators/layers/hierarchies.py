# SPDX-License-Identifier: Apache-2.0
"""The messages of caffe2/proto/hsm.proto, PyTorch 1.8.1: trees of words, and paths to them.

They are few and small; reading and writing them takes less than classes of protobuf would.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bridge.c10.errors import EnforceNotMet


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and values of fields: int, or bytes. Raises EnforceNotMet: damaged."""
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            kind = key & 7
            if kind == 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            elif kind in (1, 5):
                size = 8 if kind == 1 else 4
                yield key >> 3, data[at : at + size]
                at += size
            elif kind == 2:
                size, at = _varint(data, at)
                if at + size > len(data):
                    raise IndexError
                yield key >> 3, data[at : at + size]
                at += size
            else:
                raise IndexError
    except IndexError as cause:
        raise EnforceNotMet("The hierarchy is not a message of hsm.proto.") from cause


def paths_of(data: bytes) -> dict[int, list[tuple[int, int, int]]]:
    """Return the paths of a HierarchyProto: by word the index, length and target of each node."""
    found: dict[int, list[tuple[int, int, int]]] = {}
    for number, path in _fields(data):
        if number != 2:
            continue
        word, nodes = 0, []
        for field, value in _fields(path):
            if field == 1:
                word = value
            elif field == 2:
                node = dict(_fields(value))
                nodes.append((node.get(1, 0), node.get(2, 0), node.get(3, 0)))
        found.setdefault(word, nodes)
    return found


class TreeNode:
    """A NodeProto: `children`, then `words`, whose parameters are the rows from `offset`."""

    def __init__(self, offset: int = 0, name: bytes = b"") -> None:
        self.offset = offset
        self.name = name
        self.children: list[TreeNode] = []
        self.words: list[int] = []


def tree_of(data: bytes) -> TreeNode:
    """Return the root of a TreeProto."""
    root = [value for number, value in _fields(data) if number == 1]
    return _node(b"".join(root))


def _node(data: bytes) -> TreeNode:
    node = TreeNode()
    for number, value in _fields(data):
        if number == 1:
            node.children.append(_node(value))
        elif number == 2 and isinstance(value, bytes):  # packed
            at = 0
            while at < len(value):
                word, at = _varint(value, at)
                node.words.append(word)
        elif number == 2:
            node.words.append(value)
        elif number == 3:
            node.offset = value
        elif number == 4:
            node.name = value
    return node


def tree_bytes(root: TreeNode) -> bytes:
    """Return the TreeProto of a root."""
    return _delimited(1, _node_bytes(root))


def _node_bytes(node: TreeNode) -> bytes:
    made = b"".join(_delimited(1, _node_bytes(child)) for child in node.children)
    made += b"".join(_number(2, word) for word in node.words)
    return made + _number(3, node.offset)


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3]) + _as_varint(value)


def _delimited(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _as_varint(len(content)) + content


def _as_varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
