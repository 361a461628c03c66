# SPDX-License-Identifier: Apache-2.0
"""Gradients that the real Caffe2 computes wrong, since one gradient is written over another."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace

X = np.array([1.0, 4.0], np.float32)


@pytest.fixture(autouse=True)
def fed(fresh_workspace: None) -> None:
    workspace.FeedBlob("x", X)
    workspace.FeedBlob("w", np.array([3.0, 5.0], np.float32))


def gradient(net: core.Net, ys: object, name: str) -> np.ndarray:
    found = net.AddGradientOperators(ys)
    workspace.RunNetOnce(net)
    return workspace.FetchBlob(found[name])


def test_gradient_of_several_operators_is_added_to_a_sum() -> None:
    """The gradient of Sqrt is Scale and Div; the real Div reads what another operator made."""
    net = core.Net("chain")
    net.Sqrt("x", "a")
    net.Exp("x", "b")
    net.Add(["a", "b"], "loss")
    found = gradient(net, ["loss"], "x")
    np.testing.assert_allclose(found, 0.5 / np.sqrt(X) + np.exp(X), rtol=1e-5)
    names = [list(op.output) for op in net.Proto().op if op.type in ("Scale", "Div")]
    assert names == [["_x_grad_autosplit_0"]] * 2


def test_gradient_passed_on_by_sum_is_not_scaled_in_place() -> None:
    """The gradient of Sqr scales that of its output, which is that of `w`, too."""
    net = core.Net("shared")
    net.Sqr("x", "a")
    net.Sum(["a", "w"], "b")
    net.Negative("b", "loss")
    found = net.AddGradientOperators(["loss"])
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob(found["w"]), [-1, -1])
    np.testing.assert_array_equal(workspace.FetchBlob(found["x"]), -2 * X)


def test_gradient_passed_on_by_sum_is_not_mixed_with_an_earlier_version() -> None:
    net = core.Net("versions")
    net.Negative("x", "t")
    net.Negative("t", "a")
    net.Sum(["a", "w"], "t")
    net.Negative("t", "loss")
    found = net.AddGradientOperators(["loss"])
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob(found["w"]), [-1, -1])
    np.testing.assert_array_equal(workspace.FetchBlob(found["x"]), [-1, -1])


@pytest.mark.parametrize("name", ["given", "a_grad"])
def test_given_gradient_of_a_blob_that_others_use_is_added(name: str) -> None:
    net = core.Net("given")
    net.Negative("x", "a")
    net.Negative("a", "loss")
    net.AddExternalInput(name, "loss_grad")
    workspace.FeedBlob(name, np.array([10, 20], np.float32))
    workspace.FeedBlob("loss_grad", np.ones(2, np.float32))
    found = gradient(net, {"loss": "loss_grad", "a": name}, "x")
    np.testing.assert_array_equal(found, [-9, -19])


@pytest.mark.parametrize("op_type", ["Log", "Logit", "Sqr", "Softsign"])
def test_in_place_where_the_old_value_is_needed_is_refused(op_type: str) -> None:
    net = core.Net("in_place")
    net.Copy("x", "y")
    getattr(net, op_type)("y", "y")
    with pytest.raises(EnforceNotMet, match="in place"):
        net.AddGradientOperators(["y"])


def test_product_in_place_of_a_factor_has_the_gradient_of_that_factor() -> None:
    net = core.Net("factor")
    net.Copy("x", "y")
    net.Mul(["y", "w"], "y")
    found = net.AddGradientOperators(["y"])
    workspace.RunNetOnce(net)
    np.testing.assert_array_equal(workspace.FetchBlob(found["x"]), [3, 5])
    assert "w" not in found


def test_power_of_a_blob_by_itself_is_refused() -> None:
    net = core.Net("power")
    net.Pow(["x", "x"], "loss")
    with pytest.raises(EnforceNotMet, match="as more than one input"):
        net.AddGradientOperators(["loss"])
    assert len(net.Proto().op) == 1


def test_gradient_names_of_two_letters_are_names() -> None:
    """The real one takes the two letters for a sparse gradient's two names."""
    op = core.CreateOperator("Relu", ["x"], ["y"])
    made, _ = core.GradientRegistry.GetGradientForOp(op, ["dy"])
    assert list(made[0].input) == ["y", "dy"]
