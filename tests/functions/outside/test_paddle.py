# SPDX-License-Identifier: Apache-2.0
"""Wrapped functions under Paddle's autograd. They run in a process of their own."""

from __future__ import annotations

import pytest
import torch

import bridge
from tests.helpers import alone


def test_paddle_asks_for_some_gradients_only() -> None:
    paddle = alone.importorskip("paddle")
    run = bridge.wrap(lambda x, w: (x**2 * w).sum(), "torch")
    for wanted in (0, 1):
        x, w = (paddle.to_tensor([one, one], stop_gradient=False) for one in (3.0, 5.0))
        inputs = [x * 1, w * 1]
        (found,) = paddle.grad(run(*inputs), [(x, w)[wanted]])
        assert found.tolist() == [[30.0, 30.0], [9.0, 9.0]][wanted]


def test_paddle_records_nothing_without_gradients() -> None:
    paddle = alone.importorskip("paddle")
    run = bridge.wrap(lambda x: (x * 2, torch.argmax(x)), "torch")
    x = paddle.ones([2])
    assert run(x)[0].stop_gradient
    x.stop_gradient = False
    value, place = run(x)
    assert not value.stop_gradient
    assert place.stop_gradient
    with paddle.no_grad():
        assert run(x)[0].stop_gradient
    with pytest.raises(BufferError, match=r"detach\(\)"):
        bridge.wrap(lambda x: x, "numpy")(x)


def test_paddle_tells_of_a_change_before_the_backward_pass() -> None:
    paddle = alone.importorskip("paddle")
    x = paddle.ones([2])
    x.stop_gradient = False
    y = x * 1
    loss = bridge.wrap(lambda x: (x**2).sum(), "torch")(y)
    y.add_(paddle.ones([2]))
    with pytest.raises(Exception, match="changed in place before its backward pass"):
        loss.backward()


def test_tests_of_paddle_pass_in_a_process_of_their_own() -> None:
    assert alone.run_alone("paddle", __file__) == 3
