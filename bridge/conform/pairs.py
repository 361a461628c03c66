# SPDX-License-Identifier: Apache-2.0
"""Every producer with every consumer."""

from __future__ import annotations

from collections.abc import Sequence

from bridge.annotation import Any
from bridge.conform import worker
from bridge.conform.processes import ask


def check_pairs(names: Sequence[str]) -> list[dict[str, Any]]:
    """Pass a tensor from each library to each, in every order of release.

    Returns for each pair ``producer``, ``consumer``, ``outcome``, ``values`` (whether they are
    right), ``bytes_before`` and ``bytes_after`` (of the tensors' memory in use, before and after),
    ``deleters`` (how often the deleter of an export was called) and ``seen``; None for facts that
    could not be measured.
    """
    pairs = [[producer, consumer] for producer in names for consumer in names]
    try:
        found = ask(worker.__name__, {"pairs": pairs})
    except RuntimeError:
        # Not all of them can live in one process.
        found = [_alone(pair) for pair in pairs]
    assert isinstance(found, list)
    return found


def pair_is_broken(pair: dict[str, Any]) -> bool:
    """Return whether something is wrong with a pair."""
    return pair["outcome"] in ("broken", "crash", "hang")


def _alone(pair: list[str]) -> Any:
    try:
        return ask(worker.__name__, {"pairs": [pair]})[0]
    except RuntimeError as error:
        return {
            "producer": pair[0],
            "consumer": pair[1],
            "outcome": "crash",
            "values": None,
            "bytes_before": None,
            "bytes_after": None,
            "deleters": None,
            "seen": str(error),
        }
