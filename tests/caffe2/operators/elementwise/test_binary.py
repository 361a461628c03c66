# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of integers at the ends of their range."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated

pytestmark = pytest.mark.usefixtures("fresh_workspace")

INTS = pytest.mark.parametrize("dtype", [np.int32, np.int64])


def quotient(a: object, b: object, output: str, **arguments: object) -> object:
    workspace.FeedBlob("a", a)
    workspace.FeedBlob("b", b)
    net = core.Net("quotient")
    net.Div(["a", "b"], [output], **arguments)
    workspace.RunNetOnce(net)
    return workspace.FetchBlob(output)


@isolated
@INTS
@pytest.mark.parametrize("output", ["c", "a"])
def test_the_lowest_integer_over_minus_one_wraps_around(dtype: type, output: str) -> None:
    """The processor ends a process that divides these."""
    lowest = np.iinfo(dtype).min
    a = np.array([lowest, lowest, 7, -7, 0], dtype)
    found = quotient(a, np.array([-1, 2, -1, 2, -1], dtype), output)
    np.testing.assert_array_equal(found, np.array([lowest, lowest // 2, -7, -3, 0], dtype))


@isolated
@INTS
def test_a_broadcast_divisor_of_minus_one_wraps_the_lowest_number(dtype: type) -> None:
    lowest = np.iinfo(dtype).min
    found = quotient(np.array([[lowest, 7]], dtype), np.array([-1, 3], dtype), "c", broadcast=1)
    np.testing.assert_array_equal(found, np.array([[lowest, 2]], dtype))


@isolated
@INTS
def test_a_net_that_ran_before_looks_at_the_divisors_again(dtype: type) -> None:
    lowest = np.iinfo(dtype).min
    workspace.FeedBlob("a", np.array([6, 7], dtype))
    workspace.FeedBlob("b", np.array([2, 2], dtype))
    net = core.Net("again")
    net.Div(["a", "b"], ["c"])
    workspace.CreateNet(net)
    for _ in range(3):
        workspace.RunNet(net)
    workspace.FeedBlob("a", np.array([lowest, 7], dtype))
    workspace.FeedBlob("b", np.array([-1, 2], dtype))
    workspace.RunNet(net)
    np.testing.assert_array_equal(workspace.FetchBlob("c"), np.array([lowest, 3], dtype))
