# SPDX-License-Identifier: Apache-2.0
"""The device of a parameter is its own, else that of its gradient."""

from __future__ import annotations

import pytest

from bridge.caffe2 import core, optimizer


def test_the_first_known_of_parameter_values_indices_and_default() -> None:
    gradient = core.GradientSlice("i", "v")
    devices = {"p": "of p", "v": "of v", "i": "of i", "g": "of g"}

    def device(*known: str, grad: object = gradient, default: object = None) -> object:
        found = {name: devices[name] for name in known}
        return optimizer.get_param_device("p", grad, found, default)

    assert device("p", "v", "i") == "of p"
    assert device("v", "i") == "of v"
    assert device("i") == "of i"
    assert device("g", grad="g") == "of g"
    assert device(default="default") == "default"
    with pytest.raises(AssertionError, match="Cannot infer device for p"):
        device()
