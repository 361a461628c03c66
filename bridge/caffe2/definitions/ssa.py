# SPDX-License-Identifier: Apache-2.0
"""The versions of blobs in a net, in static single assignment form (SSA).

Each output of an operator is a new version of the blob.
Follows get_ssa, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.caffe2.base.messages import as_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    Versioned = tuple[str, int]
    Ssa = list[tuple[list[Versioned], list[Versioned]]]


def get_ssa(net: Any, blob_versions: dict[str, int] | None = None) -> tuple[Ssa, dict[str, int]]:
    """Return the inputs and outputs of each operator as (name, version), and the last versions.

    A blob has version 0 until an operator writes it. blob_versions: the versions before the first
    operator, updated in place; it is the second result.
    """
    message = as_message(net, "NetDef", "get_ssa")
    versions = {} if blob_versions is None else blob_versions
    for name in message.external_input:
        versions.setdefault(name, 0)
    ssa = []
    for operator in message.op:
        if not message.external_input:
            for name in operator.input:
                versions.setdefault(name, 0)
        inputs = [(name, versions.get(name, 0)) for name in operator.input]
        for name in operator.output:
            versions[name] = versions.get(name, 0) + 1
        ssa.append((inputs, [(name, versions[name]) for name in operator.output]))
    return ssa, versions


def reads_and_writes(
    operators: Iterable[tuple[Iterable[str], Iterable[str]]],
) -> tuple[list[str], list[str]]:
    """Return the names that operators read before one writes them, and those that they write.

    operators: the inputs and outputs of each.
    """
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    for inputs, outputs in operators:
        reads.update((name, None) for name in inputs if name not in writes)
        writes.update(dict.fromkeys(outputs))
    return list(reads), list(writes)


def get_undefined_blobs(ssa: Ssa) -> set[str]:
    """Return the names of blobs that are read before an operator writes them."""
    return {name for inputs, _ in ssa for name, version in inputs if version == 0}


def get_output_producers(ssa: Ssa) -> dict[Versioned, int]:
    """Return a dict of the versions of blobs, and the position of the operator that writes each."""
    return {output: position for position, (_, outputs) in enumerate(ssa) for output in outputs}


def get_op_ids_in_path(
    ssa: Ssa, blob_versions: dict[str, int], inputs: Iterable[Any], outputs: Iterable[Any]
) -> list[int]:
    """Return the positions of the operators that compute `outputs` from the last `inputs`."""
    path_inputs = {(str(name), blob_versions[str(name)]) for name in inputs}
    producers = get_output_producers(ssa)
    wanted = [(str(name), blob_versions[str(name)]) for name in outputs]
    used: set[int] = set()
    while wanted:
        blob = wanted.pop()
        position = None if blob in path_inputs else producers.get(blob)
        if position is not None and position not in used:
            used.add(position)
            wanted.extend(ssa[position][0])
    return sorted(used)
