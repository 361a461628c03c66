# SPDX-License-Identifier: Apache-2.0
"""Gradients against differences of results."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.gradient_checker import GradientChecker, NetGradientChecker

RNG = np.random.default_rng(3)
X = RNG.uniform(0.5, 1.5, (3, 4)).astype(np.float32)
CHECKER = GradientChecker(0.005, 0.02)


def squares(name: str, operator: str = "Sqr") -> core.Net:
    net = core.Net(name)
    getattr(net, operator)("x", "y")
    return net


def test_the_gradient_of_an_operator_agrees_with_its_estimate() -> None:
    before = workspace.CurrentWorkspace()
    operator = core.CreateOperator("Sqr", "x", "y")
    agree, gradient, estimate = CHECKER.CheckSimple(
        operator, [X], 0, [0], ensure_outputs_are_inferred=True
    )
    assert agree
    np.testing.assert_allclose(gradient, 2 * X**3, rtol=1e-5)
    np.testing.assert_allclose(estimate, gradient, rtol=0.02)
    assert workspace.CurrentWorkspace() == before


def test_a_sparse_gradient_is_checked_as_a_dense_one() -> None:
    ids = np.array([2, 0, 2])
    operator = core.CreateOperator("Gather", ["x", "ids"], "y")
    agree, gradient, _ = CHECKER.CheckSimple(operator, [X, ids], 0, [0])
    assert agree
    np.testing.assert_allclose(gradient[2], 2 * X[2], rtol=1e-5)


def test_a_wrong_gradient_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    operator = core.CreateOperator("Sqr", "x", "y")
    wrong = core.CreateOperator("Copy", "y_grad", "x_grad"), ["x_grad"]
    agree, _, _ = CHECKER.CheckSimple(operator, [X], 0, [0], grad_ops=([wrong[0]], wrong[1]))
    assert not agree
    assert "grad_estimate" in capsys.readouterr().out


def test_a_gradient_of_another_shape_is_refused() -> None:
    operator = core.CreateOperator("Sqr", "x", "y")
    wrong = core.CreateOperator("ReduceSum", "y_grad", "x_grad")
    with pytest.raises(EnforceNotMet, match="Mismatched gradient shapes"):
        CHECKER.CheckSimple(operator, [X], 0, [0], grad_ops=([wrong], ["x_grad"]))


@pytest.mark.usefixtures("fresh_workspace")
def test_the_gradient_of_a_net_agrees_with_its_estimate() -> None:
    net = squares("net_gradient")
    mean, largest = NetGradientChecker.Check(net, ["y"], {"x": X}, "x", 0.001, 0.05)
    assert mean <= largest < 0.05
    with pytest.raises(EnforceNotMet, match="z has no gradient"):
        NetGradientChecker.Check(net, ["y"], {"x": X, "z": X}, "z")


@pytest.mark.usefixtures("fresh_workspace")
def test_two_nets_are_compared_by_outputs_and_gradients() -> None:
    product = core.Net("product")
    product.Mul(["x", "x"], "y")
    nets = [squares("first"), product]
    NetGradientChecker.CompareNets(nets, [["y"], ["y"]], [0], ["x"], {"x": X}, threshold=1e-5)
    nets[1] = squares("other", "Exp")
    with pytest.raises(AssertionError, match="The outputs y and y differ"):
        NetGradientChecker.CompareNets(nets, [["y"], ["y"]], [0], ["x"], {"x": X})
