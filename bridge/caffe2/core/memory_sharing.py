# SPDX-License-Identifier: Apache-2.0
"""Memory that blobs of a net share: names that later blobs take over from earlier ones.

A blob may take over the name of others where all operators that use those come before the one that
writes it. In a net that runs in order these are the earlier operators; in one that runs independent
operators at once, the ones that the operator depends on.

The functions of memonger; follows caffe2/core/memonger.cc, PyTorch 1.8.1, in the shared blobs, and
chooses the names on its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from bridge.annotation import Any
from bridge.caffe2.base.messages import copied
from bridge.caffe2.core.cloning import rename
from bridge.caffe2.definitions.operator_types import is_registered
from bridge.caffe2.definitions.schemas import check_names

# Operators that must work in place, though another name would pass for an output.
_IN_PLACE = frozenset(("IndexFreeze", "IndexLoad", "Iter", "ScatterAssign", "ScatterWeightedSum"))


def optimize_inference_net(net: bytes, static_blobs: Iterable[str | bytes]) -> bytes:
    """Return a net in which blobs share memory, for nets that run in order, without gradients.

    static_blobs: names that keep a blob of their own, as do outputs that no operator reads. Nets of
    other types, and with recurrent networks, are returned unchanged.
    """
    message = copied(net, "NetDef", "memonger")
    if message.type not in ("", "simple") or any(
        operator.type == "RecurrentNetwork" for operator in message.op
    ):
        return bytes(message.SerializeToString())
    static = {*map(_text, static_blobs), *message.external_input, *message.external_output}
    before = [(1 << i) - 1 for i in range(len(message.op))]
    # (Outputs that nobody reads are often of another type, such as the sizes that Concat gives.)
    read = {name for operator in message.op for name in operator.input}
    names = {name for operator in message.op for name in operator.output} & read - static
    _rename(message, _shared(message, before, range(len(message.op)), names, "", {}))
    return bytes(message.SerializeToString())


def compute_blob_recycling_for_dag(
    net: bytes,
    heads: Iterable[str | bytes],
    op_indices: Iterable[int],
    shareable_blob_names: Collection[str | bytes],
    namescope: str | bytes,
    dont_share_blob_names: Collection[str | bytes],
    blob_shapes: Mapping[Any, Collection[int]],
) -> bytes:
    """Return a net in which blobs share memory, for nets of any order of independent operators.

    op_indices: the operators whose outputs may take over names. shareable_blob_names: the blobs
    that may share, but for `dont_share_blob_names` and `heads`. blob_shapes: the sizes of blobs;
    where they are known, one that is as large is taken over. namescope: put before new names.

    Raises EnforceNotMet: an operator that must work in place does not.
    """
    message = copied(net, "NetDef", "memonger")
    kept = {_text(name) for name in (*dont_share_blob_names, *heads)}
    kept.update(message.external_output)
    names = {_text(name) for name in shareable_blob_names} - kept
    shapes = {_text(name): list(sizes) for name, sizes in blob_shapes.items()}
    places = list(op_indices)
    for i in places:
        operator = message.op[i]
        if operator.type in _IN_PLACE and is_registered(operator.type):
            check_names(operator.type, operator.input, operator.output)
    found = _shared(message, _ancestors(message), places, names, _text(namescope), shapes)
    _rename(message, found)
    return bytes(message.SerializeToString())


def _text(name: str | bytes) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)


def _names(operator: Any) -> set[str]:
    """Return the blobs that an operator uses, also those in nets among its arguments."""
    found = {*operator.input, *operator.output}
    for argument in operator.arg:
        for inner in argument.n.op if argument.HasField("n") else ():
            found |= _names(inner)
    return found


def _ancestors(net: Any) -> list[int]:
    """Return for each operator the set, as bits, of those that end before it begins."""
    found: list[int] = []
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for i, operator in enumerate(net.op):
        before = 0
        used = _names(operator)
        needed = {writer[name] for name in used if name in writer}
        for name in operator.output:
            needed.update(readers.get(name, ()))
        for j in needed - {i}:
            before |= found[j] | 1 << j
        found.append(before)
        for name in used:
            readers.setdefault(name, []).append(i)
        for name in operator.output:
            writer[name] = i
            readers[name] = []
    return found


class _Room:
    """The memory of one or several blobs: the operators that use it, as bits."""

    def __init__(self, device: bytes, sizes: list[int] | None) -> None:
        self.names: list[str] = []
        self.users = 0
        self.device = device
        self.sizes = sizes


def _shared(
    net: Any,
    before: list[int],
    places: Iterable[int],
    names: set[str],
    scope: str,
    shapes: dict[str, list[int]],
) -> dict[str, str]:
    """Return new names of blobs: those that share memory have the same one."""
    users: dict[str, int] = {}
    first: dict[str, int] = {}
    read_first = set(net.external_input)
    for i, operator in enumerate(net.op):
        for name in _names(operator):
            users[name] = users.get(name, 0) | 1 << i
            if name not in first and (name in operator.input or name not in operator.output):
                read_first.add(name)
            first.setdefault(name, i)
    rooms: list[_Room] = []
    for i in sorted(places):
        device = net.op[i].device_option.SerializeToString()
        for name in net.op[i].output:
            if name not in names or name in read_first or first[name] != i:
                continue
            sizes = shapes.get(name)
            free = [room for room in rooms if room.device == device and not room.users & ~before[i]]
            same = [room for room in free if room.sizes == sizes]
            if same or free:
                room = (same or free)[-1]
            else:
                room = _Room(device, sizes)
                rooms.append(room)
            room.names.append(name)
            room.users |= users[name]
            first[name] = -1  # an operator may have the name twice among its outputs
    several = [room for room in rooms if len(room.names) > 1]
    numbers = (n for n in range(len(users) + len(several)) if f"{scope}__m{n}_shared" not in users)
    renamed: dict[str, str] = {}
    for room, number in zip(several, numbers, strict=False):
        renamed.update(dict.fromkeys(room.names, f"{scope}__m{number}_shared"))
    return renamed


def _rename(net: Any, names: dict[str, str]) -> None:
    for operator in net.op:
        if operator.type.startswith("RecurrentNetwork"):
            # The gradient finds blobs by their names in its arguments.
            for name in dict.fromkeys((*operator.input, *operator.output)):
                if name in names:
                    operator.arg.add(name=f"{name}.rename", s=names[name].encode())
        rename(operator.input, names)
        rename(operator.output, names)
        for argument in operator.arg:
            if argument.HasField("n"):
                _rename(argument.n, names)
                rename(argument.n.external_input, names)
