# SPDX-License-Identifier: Apache-2.0
"""Init nets, which make the weights of another net."""

from __future__ import annotations

import pytest

from bridge import c10, caffe2
from bridge.caffe2 import core


def test_swapped_nets_are_an_error_that_says_so() -> None:
    init, net = core.Net("init"), core.Net("net")
    init.ConstantFill([], "w", shape=[3, 4])
    net.MatMul(["x", "w"], "y")
    assert list(caffe2.to_module(net, init).input_names) == ["x"]
    with pytest.raises(
        c10.EnforceNotMet, match=r"reads .x., .w..*Were the two nets swapped"
    ) as caught:
        caffe2.to_module(init, net)
    assert isinstance(caught.value, ValueError)
