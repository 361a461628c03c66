# SPDX-License-Identifier: Apache-2.0
"""The file of a segment: a safetensors file that also describes its tensors for the bridge.

The header of safetensors is padded so that the data begins at a multiple of 64. The first tensor,
``.pad0``, is the description that `attach` reads, so that it need not parse JSON: a head (`_HEAD`),
the table of `tensors.impls`, the names of its types, and the pickle of the tree that the tensors
are the leaves of, which refers to them by number. Each leaf begins at a multiple of 64; the bytes
between two are a tensor, since safetensors has no holes.

A digest covers all of it, so damaged bytes are found before any of them is used.
"""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import blake2b
from json import dumps
from struct import Struct
from struct import error as StructError

from bridge.c10.type_meta import as_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.c10.type_meta import TypeMeta
    from bridge.shared.segment import Segment

    # a key, a type, sizes, the first byte, and the one behind the last
    _Entry = tuple[str, str, Sequence[int], int, int]

ALIGNMENT = 64
_MAGIC = b"bridge\x00\x01"
# magic, digest of all that precedes the leaves, token, bytes of the file, of the description, of
# the table, of the types and of the tree; 1 if every process may write
_HEAD = Struct("<8s16s16sqqqqqq")
_TOKEN_SIZE = 16
_DIGESTED = 24  # where in the head it begins
_HEADER_SIZE = Struct("<Q")
_FIRST_READ = 2048  # bytes: all that precedes the leaves of a few

# The names that safetensors has for types; others are stored as bytes.
_NAMES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}


class Leaf:
    """A tensor to be stored."""

    __slots__ = ("dtype", "key", "nbytes", "sizes", "twin")

    def __init__(self, key: str, dtype: TypeMeta, sizes: tuple[int, ...], twin: int | None) -> None:
        self.key = key
        self.dtype = dtype
        self.sizes = sizes
        self.twin = twin  # the number of an earlier leaf that is the same memory
        nbytes = dtype.itemsize
        for size in sizes:
            nbytes *= size
        self.nbytes = nbytes


class Description:
    """The parts of a value on a segment: rows of tensors, their types, and the tree."""

    __slots__ = ("table", "tree", "types")

    def __init__(self, table: bytes, types: list[TypeMeta], tree: bytes) -> None:
        self.table = table
        self.types = types
        self.tree = tree  # empty: one tensor alone

    def __reduce__(self) -> tuple[type[Description], tuple[bytes, list[TypeMeta], bytes]]:
        return Description, (self.table, self.types, self.tree)


class Plan:
    """Where everything goes in a new segment, and the bytes that precede the leaves."""

    __slots__ = ("begins", "description", "front", "nbytes", "size", "token")

    def __init__(
        self,
        begins: list[int],
        description: Description,
        front: bytes,
        nbytes: int,
        size: int,
        token: bytes,
    ) -> None:
        self.begins = begins
        self.description = description
        self.front = front
        self.nbytes = nbytes
        self.size = size
        self.token = token


def plan(leaves: Sequence[Leaf], tree: bytes, writable: bool) -> Plan:
    """Return the Plan of a segment for these leaves; `tree` is empty for a tensor alone."""
    return _with_token(*_skeleton(leaves, tree, writable))


def plan_one(dtype: TypeMeta, sizes: tuple[int, ...], writable: bool) -> Plan:
    """Return the Plan of a segment for one tensor alone."""
    return _with_token(*_skeleton_of_one(dtype, sizes, writable))


def _with_token(plan: Plan, head: bytes, body: bytes) -> Plan:
    token = os.urandom(_TOKEN_SIZE)
    body = token + body
    front = b"".join((head, _MAGIC, _digest(head, body), body))
    return Plan(plan.begins, plan.description, front, plan.nbytes, plan.size, token)


@lru_cache(256)
def _skeleton_of_one(
    dtype: TypeMeta, sizes: tuple[int, ...], writable: bool
) -> tuple[Plan, bytes, bytes]:
    return _skeleton([Leaf("tensor", dtype, sizes, None)], b"", writable)


def _skeleton(leaves: Sequence[Leaf], tree: bytes, writable: bool) -> tuple[Plan, bytes, bytes]:
    """Return a Plan without token, the text before the digest, and the text after the token."""
    types: list[TypeMeta] = []
    for leaf in leaves:
        if leaf.dtype not in types:
            types.append(leaf.dtype)
    words = sum(6 + 2 * len(leaf.sizes) for leaf in leaves)
    names = "\n".join(dtype.name for dtype in types).encode()
    used = _HEAD.size + 8 * words + len(names) + len(tree)
    described = _padded(used)
    begins, entries = _placed(leaves, described)
    end = entries[-1][-1]
    header = _header(entries)
    data = _HEADER_SIZE.size + len(header)
    begins = [data + begin for begin in begins]
    table = _table(leaves, begins, types)
    rest = (data + end, described, len(table), len(names), len(tree), int(writable))
    body = _HEAD.pack(b"", b"", b"", *rest)[_DIGESTED + _TOKEN_SIZE :] + table + names + tree
    body += bytes(described - used)
    total = sum(leaf.nbytes for leaf in leaves if leaf.twin is None)
    plan = Plan(begins, Description(table, types, tree), b"", total, data + end, b"")
    return plan, _HEADER_SIZE.pack(len(header)) + header, body


def _placed(leaves: Sequence[Leaf], described: int) -> tuple[list[int], list[_Entry]]:
    """Return where each leaf begins, and the entries of the header, by their place."""
    entries: list[_Entry] = [(".pad0", "U8", (described,), 0, described)]
    begins: list[int] = []
    end, pads = described, 1
    for leaf in leaves:
        if leaf.twin is not None:
            begins.append(begins[leaf.twin])
            continue
        begin = _padded(end)
        if begin > end:
            entries.append((f".pad{pads}", "U8", (begin - end,), end, begin))
            pads += 1
        end = begin + leaf.nbytes
        name = _NAMES.get(leaf.dtype.name)
        sizes = leaf.sizes if name is not None else (*leaf.sizes, leaf.dtype.itemsize)
        entries.append((leaf.key, name or "U8", sizes, begin, end))
        begins.append(begin)
    return begins, entries


def _padded(n: int) -> int:
    return -(-n // ALIGNMENT) * ALIGNMENT


def _digest(head: bytes, body: bytes) -> bytes:
    found = blake2b(head, digest_size=16)
    found.update(body)
    return found.digest()


def _header(entries: list[_Entry]) -> bytes:
    parts = []
    for key, name, sizes, begin, end in entries:
        shape = ",".join(map(str, sizes))
        parts.append(
            f'{_quoted(key)}:{{"dtype":"{name}","shape":[{shape}],"data_offsets":[{begin},{end}]}}'
        )
    header = f"{{{','.join(parts)}}}".encode()
    return header.ljust(_padded(_HEADER_SIZE.size + len(header)) - _HEADER_SIZE.size)


def _quoted(key: str) -> str:
    # (half of a surrogate pair is not text for other readers)
    return dumps(key.encode("utf-8", "backslashreplace").decode())


def _table(leaves: Sequence[Leaf], begins: list[int], types: list[TypeMeta]) -> bytes:
    words: list[int] = []
    index = {id(dtype): i for i, dtype in enumerate(types)}
    for leaf, begin in zip(leaves, begins, strict=True):
        strides: list[int] = []
        step = 1
        for size in reversed(leaf.sizes):
            strides.append(step)
            step *= max(size, 1)
        words += (index[id(leaf.dtype)], begin, leaf.nbytes, 0, 0, len(leaf.sizes), *leaf.sizes)
        words += reversed(strides)
    return Struct(f"<{len(words)}q").pack(*words)


def read(segment: Segment) -> tuple[Description, bytes]:
    """Return the Description in a segment, and its token.

    Raises BufferError: it is not a segment of bridge, or damaged.
    """
    try:
        front = segment.read(0, min(segment.size, _FIRST_READ))
        (header_size,) = _HEADER_SIZE.unpack_from(front)
        if header_size > segment.size:
            raise BufferError("The header is longer than the file.")
        data = _HEADER_SIZE.size + header_size
        if data + _HEAD.size > len(front):
            front = segment.read(0, data + _HEAD.size)
        head = _HEAD.unpack_from(front, data)
        magic, digest, token, size, described, table, names, tree, writable = head
        if magic != _MAGIC:
            raise BufferError("It has no description of the bridge.")
        if size != segment.size:
            raise BufferError(f"It has {segment.size} bytes, and was made with {size}.")
        if data + described > len(front):
            front = segment.read(0, data + described)
        body = front[data + _DIGESTED : data + described]
        if _digest(front[:data], body) != digest:
            raise BufferError("Its description was changed.")
        if bool(writable) is not segment.open_to_all:
            raise BufferError("Its seals are not those that it was made with.")
        at = _HEAD.size - _DIGESTED
        if min(table, names, tree) < 0 or at + table + names + tree > len(body):
            raise BufferError("The parts of its description overlap.")
        types = [as_type(name) for name in body[at + table :][:names].decode().split("\n")]
        return Description(body[at:][:table], types, body[at + table + names :][:tree]), token
    except (BufferError, StructError, UnicodeDecodeError, TypeError) as error:
        raise BufferError(f"This memory is not a segment of bridge, or damaged: {error}") from error


def token_of(segment: Segment) -> bytes:
    """Return the random bytes that a segment was made with; of other memory, the bytes there."""
    (header_size,) = _HEADER_SIZE.unpack(segment.read(0, _HEADER_SIZE.size))
    return segment.read(min(_HEADER_SIZE.size + header_size, segment.size) + _DIGESTED, _TOKEN_SIZE)
