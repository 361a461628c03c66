# SPDX-License-Identifier: Apache-2.0
"""What every operator that is a function keeps to, on some recorded cases of each type.

Repeated runs, which write into buffers and then repeat recorded torch calls, compute what the first
one does. The function itself, as modules call it, depends on no default of torch.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.function_operator import FunctionOperator
from bridge.caffe2.execution.registry import class_for
from tests.conformance.operators.case import Case, groups
from tests.conformance.operators.recorded import Outcome, outcomes
from tests.conformance.operators.test_operators import check_same

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def definition_of(case: Case) -> Definition:
    op_type, inputs, outputs, args = case.steps[0]
    return Definition(core.CreateOperator(op_type, inputs, outputs, **args), None, None, "test")


def function_cases(most: int) -> Iterator[Any]:
    """Yield up to `most` cases of each operator that is a function, and not random."""
    seen: Counter[str] = Counter()
    for group in groups():
        for case, outcome in outcomes(group):
            op_type = case.steps[0][0]
            if outcome.error is not None or len(case.steps) > 1 or not core.IsOperator(op_type):
                continue
            cls = class_for(definition_of(case), "test")
            if not issubclass(cls, FunctionOperator) or cls._declaration.effects & {"random", "io"}:
                continue
            if any(not isinstance(one, np.ndarray) for one in outcome.blobs.values()):
                continue
            seen[op_type] += 1
            if seen[op_type] <= most:
                yield pytest.param(case, outcome, id=f"{group}-{case.name.replace(' ', '_')}")


CASES = list(function_cases(2))


def check(outcome: Outcome) -> None:
    for name, expected in outcome.blobs.items():
        check_same(workspace.FetchBlob(name), expected)


@pytest.mark.parametrize(("case", "outcome"), CASES)
def test_repeated_runs_give_the_recorded_values(case: Case, outcome: Outcome) -> None:
    op_type, inputs, outputs, args = case.steps[0]
    for name, value in case.feeds.items():
        workspace.FeedBlob(name, value)
    net = core.Net("repeated")
    net.Proto().op.extend([core.CreateOperator(op_type, inputs, outputs, **args)])
    workspace.CreateNet(net)
    seen = set()
    for _ in range(5):
        for name, value in case.feeds.items():
            workspace.FeedBlob(name, value)  # into the same memory
        workspace.RunNet(net)
        check(outcome)
        written = [workspace.FetchBlob(name) for name in outcome.blobs]
        seen.add(tuple(one.tobytes() for one in written if one.dtype.kind != "O"))
    assert len(seen) == 1


@pytest.mark.parametrize(("case", "outcome"), CASES)
def test_repeated_calls_of_a_module_give_the_bits_of_the_first(
    case: Case, outcome: Outcome
) -> None:
    if not all(map(is_numbers, case.feeds.values())):
        return  # strings are for the engine
    op_type, inputs, outputs, args = case.steps[0]
    for name, value in case.feeds.items():
        workspace.FeedBlob(name, value)
    net = core.Net("module")
    net.Proto().op.extend([core.CreateOperator(op_type, inputs, outputs, **args)])
    names = list(dict.fromkeys(inputs))
    module = caffe2.to_module(net, inputs=names, outputs=outputs)
    given = [torch.from_numpy(np.array(case.feeds[name])) for name in names]
    seen = set()
    for _ in range(4):
        found = module(*given)
        found = found if isinstance(found, tuple) else (found,)
        seen.add(
            tuple(
                one.numpy().tobytes() if isinstance(one, torch.Tensor) else str(one)
                for one in found
            )
        )
    assert len(seen) == 1


def is_numbers(value: Any) -> bool:
    return np.asarray(value).dtype.kind in "fiub"


@contextlib.contextmanager
def foreign_defaults() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            yield
    finally:
        torch.set_default_dtype(before)


def of_numbers(parameter: Any) -> bool:
    """Return whether the inputs of a case are numbers: strings are for the engine."""
    return all(map(is_numbers, parameter.values[0].feeds.values()))


def reads_values_unless_told(case: Case) -> bool:
    """Return whether the case leaves out what its operator otherwise takes from the values."""
    op_type, inputs, _, args = case.steps[0]
    if "UnsortedSegment" in op_type:
        return "num_segments" not in args
    if op_type == "PackSegments":
        return "max_length" not in args
    if op_type == "SparseToDense":
        return len(inputs) == 2 and "output_first_dim" not in args
    if op_type == "SliceGradient":
        return len(inputs) == 4  # the bounds are inputs
    if op_type.startswith("Reduce") and op_type.endswith("Gradient"):
        return np.asarray(case.feeds[inputs[1]]).dtype == np.int64  # perhaps the sizes of X
    return False


def with_known_sizes(parameter: Any) -> bool:
    """Return whether the sizes of the outputs do not depend on values."""
    case = parameter.values[0]
    definition = definition_of(case)
    if class_for(definition, "test")._declaration.reads_values(len(definition.inputs)):
        return False
    return not reads_values_unless_told(case)


@pytest.mark.parametrize(("case", "outcome"), list(filter(of_numbers, CASES)))
def test_functions_under_foreign_defaults_give_the_recorded_values(
    case: Case, outcome: Outcome
) -> None:
    definition = definition_of(case)
    bound = class_for(definition, "test").check(definition)
    operands = [torch.tensor(np.asarray(case.feeds[name])) for name in definition.inputs]
    kept = [one.clone() for one in operands]
    arguments = dict(bound.arguments)
    if "TargetDevice" in bound.wants:
        arguments[bound.wants["TargetDevice"]] = torch.device("cpu")
    with foreign_defaults():
        found = bound.function(*operands, **arguments)
    for operand, before in zip(operands, kept, strict=True):
        torch.testing.assert_close(operand, before, rtol=0, atol=0, equal_nan=True)
    results = found if isinstance(found, (tuple, list)) else (found,)
    for name, result in zip(definition.outputs, results, strict=False):
        if name in outcome.blobs:
            array = result if isinstance(result, np.ndarray) else result.numpy()
            check_same(array, outcome.blobs[name])


@pytest.mark.parametrize(
    ("case", "outcome"), list(filter(with_known_sizes, filter(of_numbers, CASES)))
)
def test_functions_on_meta_tensors_give_sizes_and_types(case: Case, outcome: Outcome) -> None:
    """On torch's meta device the function gives out tensors of the right sizes and types."""
    definition = definition_of(case)
    cls = class_for(definition, "test")
    bound = cls.check(definition)
    operands = [torch.tensor(np.asarray(case.feeds[name])).to("meta") for name in definition.inputs]
    arguments = dict(bound.arguments)
    if "TargetDevice" in bound.wants:
        arguments[bound.wants["TargetDevice"]] = torch.device("meta")
    found = bound.function(*operands, **arguments)
    results = found if isinstance(found, (tuple, list)) else (found,)
    for name, result in zip(definition.outputs, results, strict=False):
        if name in outcome.blobs:
            wanted = outcome.blobs[name]
            assert tuple(result.shape) == wanted.shape
            assert str(result.dtype).removeprefix("torch.") == str(wanted.dtype)


@pytest.mark.parametrize(
    ("op_type", "inputs", "changed", "expected"),
    [
        ("Reshape", {"s": [2, 3]}, {"s": [3, 2]}, [[3, 2]]),
        ("Slice", {"s": [0], "e": [2]}, {"s": [1], "e": [-1]}, [[5]]),
        ("Split", {"s": [2, 4]}, {"s": [5, 1]}, [[5], [1]]),
        ("Expand", {"s": [2, 1]}, {"s": [3, 1]}, [[3, 6]]),
    ],
)
def test_sizes_follow_the_values_of_inputs(
    op_type: str, inputs: Any, changed: Any, expected: Any
) -> None:
    outputs = ["y", "z"][: 1 + (op_type in ("Reshape", "Split"))]
    integer = np.int32 if op_type == "Split" else np.int64
    workspace.FeedBlob("x", np.arange(6, dtype=np.float32))
    net = core.Net("sizes_by_values")
    axis = {"axis": 0} if op_type == "Split" else {}
    net.Proto().op.extend([core.CreateOperator(op_type, ["x", *inputs], outputs, **axis)])
    for values in (inputs, inputs, inputs, changed):
        for name, value in values.items():
            workspace.FeedBlob(name, np.array(value, integer))
        if values is inputs and not workspace.HasBlob("y"):
            workspace.CreateNet(net)
        workspace.RunNet(net)
    for name, sizes in zip(outputs, expected, strict=False):
        assert list(workspace.FetchBlob(name).shape) == sizes
