# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of arrays, which leave the current workspace alone."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.functional import Functional

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def test_results_are_a_tuple_with_names() -> None:
    rows = [np.full((n, 2), n, np.float32) for n in (1, 2)]
    result = Functional.Concat(*rows, axis=0, device_option=core.DeviceOption(0))
    joined, sizes = result
    np.testing.assert_array_equal(joined, np.concatenate(rows))
    assert sizes.tolist() == result["output_1"].tolist() == result.output_1.tolist() == [1, 2]
    assert type(result).__name__ == "output"
    assert workspace.Blobs() == []


def test_the_number_of_outputs_is_said_where_any_will_do() -> None:
    x = np.arange(6, dtype=np.float32)
    parts = Functional.Split(x, axis=0, split=[1, 5], num_output=2)
    assert [part.tolist() for part in parts] == [[0], [1, 2, 3, 4, 5]]
    with pytest.raises(ValueError, match="say how many by num_output"):
        Functional.Split(x, axis=0)


def test_outputs_in_place_have_the_names_of_inputs() -> None:
    param, grad, rate = (np.ones(2, np.float32) for _ in range(3))
    result = Functional.ScatterAssign(param, np.array([1]), np.float32([5]))
    assert result["input_0"].tolist() == [1, 5]
    assert param.tolist() == [1, 1]
    with pytest.raises(ValueError, match="does not take 2 inputs and 1 outputs"):
        Functional.Relu(grad, rate)


def test_a_type_that_is_not_known_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="NoSuch"):
        Functional.NoSuch(np.ones(1))
    with pytest.raises(AttributeError):
        Functional.__wrapped__  # noqa: B018
