# SPDX-License-Identifier: Apache-2.0
"""Every producer with every consumer, in every order of release."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.conform.exchanges import exchanged
from bridge.conform.pairs import check_pairs, pair_is_broken
from tests.conform.subjects import Subject, faults


def parts(subject: Any) -> dict[str, Any]:
    return {name: getattr(subject, name) for name in ("make", "from_dlpack", "to_numpy")}


def test_numpy_and_the_bridge_share_with_each_other() -> None:
    found = check_pairs(["numpy", "bridge"])
    assert [(one["producer"], one["consumer"]) for one in found] == [
        ("numpy", "numpy"),
        ("numpy", "bridge"),
        ("bridge", "numpy"),
        ("bridge", "bridge"),
    ]
    for one in found:
        assert one == {
            "producer": one["producer"],
            "consumer": one["consumer"],
            "outcome": "ok",
            "values": True,
            "bytes_before": 0,
            "bytes_after": 0,
            "deleters": 1,
            "seen": "shared",
        }
        assert not pair_is_broken(one)


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("delete-never", "a deleter was called 0 times"),
        ("delete-twice", "a deleter was called 2 times"),
        ("strides-taken-as-bytes", "the values are others"),
        ("deleter-keeps-array", "memory is in use after all was released"),
    ],
)
def test_a_fault_of_a_pair_is_found(fault: str, seen: str) -> None:
    with faults(fault):
        found = exchanged(parts(Subject()), parts(Subject()))
    assert (found["outcome"], found["seen"]) == ("broken", seen)
    assert pair_is_broken(found)


def test_a_crash_of_a_pair_is_a_result() -> None:
    with faults("import-crashes"):
        found = exchanged(parts(Subject()), parts(Subject()))
    assert found["outcome"] == "crash"
    assert found["values"] is None


def test_a_refusal_of_a_pair_is_not_broken() -> None:
    def refuse(x: Any) -> Any:
        raise BufferError("not yours")

    found = exchanged(parts(Subject()), {**parts(Subject()), "from_dlpack": refuse})
    assert (found["outcome"], found["seen"]) == ("n/a", "BufferError: not yours")


def test_a_copy_is_told_from_sharing() -> None:
    def copy(tensor: Any) -> Any:
        return np.array(tensor.array)

    found = exchanged(parts(Subject()), {**parts(Subject()), "to_numpy": copy})
    assert (found["outcome"], found["seen"]) == ("ok", "copied")


def test_a_library_of_one_dimension_is_exchanged_in_one() -> None:
    def make(array: np.ndarray) -> Any:
        if array.ndim != 1:
            raise ValueError("only one dimension")
        return Subject().make(array)

    found = exchanged({**parts(Subject()), "make": make}, parts(Subject()))
    assert (found["outcome"], found["seen"]) == ("ok", "shared, of one dimension")


def test_a_library_that_cannot_be_imported_says_so() -> None:
    found = exchanged("it cannot be imported", parts(Subject()))
    assert (found["outcome"], found["seen"]) == ("n/a", "it cannot be imported")
