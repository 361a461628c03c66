# SPDX-License-Identifier: Apache-2.0
"""Every recorded case on the bridge: values to 1e-5, shapes, types and refusals exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace

from .case import Case, groups
from .recorded import Outcome, outcomes

pytestmark = pytest.mark.usefixtures("fresh_workspace")

RECORDED = [
    pytest.param(case, outcome, id=f"{group}-{case.name.replace(' ', '_')}")
    for group in groups()
    for case, outcome in outcomes(group)
]


def check_same(actual: Any, expected: Any) -> None:
    """Arrays of one shape and type whose values differ by 1e-5 at most, relative to their size."""
    if not isinstance(expected, np.ndarray):
        assert actual == expected
        return
    assert isinstance(actual, np.ndarray)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected)
        return
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    # Where terms cancel, the error is to be small against them, and of them the largest is known.
    floor = float(finite.max()) * 1e-6 if finite.size else 0.0
    rtol = 1e-5 if expected.dtype != np.float16 else 1e-3
    np.testing.assert_allclose(
        actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=floor
    )


def state() -> dict[str, Any]:
    """What all blobs hold now, copied; or the objects that they hold."""
    held = {}
    for name in workspace.Blobs():
        blob = workspace.Workspace.current.blobs[name]
        if not blob.is_tensor():
            held[name] = blob._object
        elif _is_of_objects(blob._tensor):
            held[name] = blob._tensor.data()[:]
        else:
            held[name] = workspace.FetchBlob(name)
    return held


def _is_of_objects(tensor: Any) -> bool:
    dtype = tensor.dtype()
    return bool(dtype) and not dtype.is_pod and dtype is not c10.string


def check_refused(op_type: str, inputs: list[str], outputs: list[str], args: Any) -> None:
    """The operator is refused, when made or when run, and every blob holds what it held."""
    for name in outputs:
        if not workspace.HasBlob(name):
            workspace.FeedBlob(name, np.array([7, 8, 9], np.int16))
    before = state()
    with pytest.raises(c10.EnforceNotMet):
        workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, **args))
    after = state()
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
        assert getattr(after[name], "dtype", None) == getattr(value, "dtype", None)


def check_own_memory() -> None:
    """Each blob has memory of its own: no output is a view of an input."""
    owners: dict[int, str] = {}
    for name, blob in workspace.Workspace.current.blobs.items():
        tensor = blob._tensor
        if tensor is not None and tensor.numel() and tensor.dtype().is_pod:
            assert owners.setdefault(tensor.raw_data(), name) == name


@pytest.mark.parametrize(("case", "outcome"), RECORDED)
def test_each_recorded_case_gives_the_values_of_caffe2(case: Case, outcome: Outcome) -> None:
    assert case.checksum() == outcome.fed, "other blobs were fed when this was recorded"
    for name, value in case.feeds.items():
        workspace.FeedBlob(name, value)
    for number, (op_type, inputs, outputs, args) in enumerate(case.steps):
        if outcome.error is not None and number == outcome.step:
            check_refused(op_type, inputs, outputs, args)
            return
        workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, **args))
    for name, expected in outcome.blobs.items():
        if expected is not None:
            check_same(workspace.FetchBlob(name), expected)
    if not any(step[0].startswith(("Alias", "UnsafeCoalesce")) for step in case.steps):
        check_own_memory()
