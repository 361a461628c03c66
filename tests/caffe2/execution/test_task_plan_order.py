# SPDX-License-Identifier: Apache-2.0
"""Which operators wait for which."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.caffe2 import core
from bridge.caffe2.execution.definition import definition_of
from bridge.caffe2.execution.registry import class_for
from bridge.caffe2.execution.task_plan import ancestors, chains_of, may_wait, predecessors


def definitions(*operators: tuple[Any, ...]) -> list[Any]:
    found = []
    for op_type, inputs, outputs, *arguments in operators:
        made = core.CreateOperator(op_type, inputs, outputs, **dict(*arguments))
        found.append(definition_of(made, "test"))
        class_for(found[-1], "test")
    return found


def test_an_operator_waits_for_the_writer_of_what_it_reads_and_the_readers_of_what_it_writes() -> (
    None
):
    before = predecessors(
        definitions(
            ("Relu", ["x"], ["a"]),
            ("Relu", ["a"], ["b"]),
            ("Negative", ["y"], ["c"]),
            ("Negative", ["c"], ["a"]),
        )
    )
    assert before == [set(), {0}, set(), {0, 1, 2}]
    assert ancestors(before) == [0, 0b1, 0, 0b111]


def test_operators_that_draw_random_numbers_keep_their_order() -> None:
    fill = {"shape": [2]}
    found = definitions(("UniformFill", [], ["a"], fill), ("GaussianFill", [], ["b"], fill))
    assert predecessors(found) == [set(), {0}]


def test_a_chain_is_of_operators_each_the_only_successor_of_the_one_before() -> None:
    chains, waits = chains_of([set(), {0}, {1}, {1}, {2, 3}])
    assert chains == [[0, 1], [2], [3], [4]]
    assert waits == [set(), {0}, {0}, {1, 2}]


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "expected"),
    [
        ("Relu", ["x"], ["y"], False),
        ("EnforceFinite", ["x"], [], False),
        ("Iter", ["x"], ["x"], False),
        ("DequeueBlobs", ["queue"], ["x"], True),
        ("Python", [], ["x"], True),
        ("Print", ["x"], [], True),
    ],
)
def test_queues_and_python_functions_may_wait(
    op_type: str, inputs: list[str], outputs: list[str], expected: bool
) -> None:
    assert may_wait(*definitions((op_type, inputs, outputs))) is expected
