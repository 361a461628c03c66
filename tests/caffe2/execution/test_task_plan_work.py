# SPDX-License-Identifier: Apache-2.0
"""The estimate of what an operator takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.execution.definition import definition_of
from bridge.caffe2.execution.registry import class_for
from bridge.caffe2.execution.task_plan import work_of

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def work(op_type: str, inputs: dict[str, Any], **arguments: Any) -> float:
    """Return the estimate for an operator with one output that has run once."""
    for name, value in inputs.items():
        workspace.FeedBlob(name, value)
    made = core.CreateOperator(op_type, list(inputs), ["result"], **arguments)
    workspace.RunOperatorOnce(made)
    definition = definition_of(made, "test")
    return work_of(
        class_for(definition, "test")(definition, workspace.Workspace.current), definition
    )


def zeros(*sizes: int) -> np.ndarray:
    return np.zeros(sizes, np.float32)


def test_it_grows_with_the_elements() -> None:
    assert work("Relu", {"x": zeros(1000, 1000)}) > 100 * work("Relu", {"x": zeros(10)})


def test_a_product_takes_as_many_steps_as_it_multiplies() -> None:
    inputs = {"x": zeros(64, 256), "w": zeros(128, 256), "b": zeros(128)}
    products = 64 * 256 * 128
    assert 0.01 * products < work("FC", inputs) < 0.05 * products


def test_many_small_products_take_what_they_take() -> None:
    x = zeros(100, 8, 16)
    products = 100 * 8 * 8 * 16
    assert work("BatchMatMul", {"x": x, "y": x}, trans_b=1) < 0.05 * products + 5000


@pytest.mark.parametrize("op_type", ["SparseLengthsSum", "Gather"])
def test_rows_that_are_not_read_do_not_count(op_type: str) -> None:
    found = []
    for rows in (100, 100_000):
        inputs = {"table": zeros(rows, 64), "i": np.zeros(50, np.int64)}
        if op_type == "SparseLengthsSum":
            inputs["lengths"] = np.full(10, 5, np.int32)
        found.append(work(op_type, inputs))
    assert found[0] == found[1]
