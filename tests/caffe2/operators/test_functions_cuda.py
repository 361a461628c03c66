# SPDX-License-Identifier: Apache-2.0
"""Operators that are functions compute on CUDA blobs what they compute on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge.caffe2 import core, workspace
from bridge.caffe2.definitions.operator_types import classes_of
from bridge.caffe2.execution.function_operator import FunctionOperator
from bridge.caffe2.execution.registry import class_for
from tests.caffe2.operators.test_functions import check, definition_of, function_cases, of_numbers
from tests.conformance.operators.case import Case
from tests.conformance.operators.recorded import Outcome
from tests.helpers.host_waits import counter

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.usefixtures("fresh_workspace"),
]


def runs_on_cuda(parameter: Any) -> bool:
    """Return whether a case is of numbers, and of an operator that runs there."""
    op_type = parameter.values[0].steps[0][0]
    return of_numbers(parameter) and "cuda" in (classes_of(op_type) or ())


CASES = list(filter(runs_on_cuda, function_cases(2))) if torch.cuda.is_available() else []


@pytest.mark.parametrize(("case", "outcome"), CASES)
def test_operators_give_the_recorded_values_on_cuda(case: Case, outcome: Outcome) -> None:
    op_type, inputs, outputs, args = case.steps[0]
    if op_type == "InferenceLSTM" and counter() is not None:
        pytest.skip("the stand-in for CUDA has no torch.lstm")
    cls = class_for(definition_of(case), "test")
    assert issubclass(cls, FunctionOperator)
    declaration = cls._declaration
    on_cuda = core.DeviceOption(1)  # CUDA
    last = len(declaration.inputs) - 1
    for i, name in enumerate(inputs):
        on_host = min(i, last) in declaration.on_host
        workspace.FeedBlob(name, case.feeds[name], None if on_host else on_cuda)
    operator = core.CreateOperator(op_type, inputs, outputs, device_option=on_cuda, **args)
    for _ in range(3):
        workspace.RunOperatorOnce(operator)
        if set(inputs) & set(outputs):
            break
    for name in outputs:
        if outcome.blobs.get(name) is not None and not op_type.startswith("EnsureCPU"):
            found = workspace.FetchTorch(name)
            assert found.is_cuda == (np.asarray(outcome.blobs[name]).dtype.kind in "fiub")
    check(outcome)
