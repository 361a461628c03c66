# SPDX-License-Identifier: Apache-2.0
"""What operators read and write, in order."""

from __future__ import annotations

from bridge.caffe2.definitions.ssa import reads_and_writes


def test_a_name_is_read_if_no_earlier_operator_writes_it() -> None:
    operators = [(["a"], ["b"]), (["b", "c"], ["a"]), (["a"], ["a"])]
    assert reads_and_writes(operators) == (["a", "c"], ["b", "a"])
