# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators that run nets.

Follows the gradient makers of caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.caffe2.gradients.maker import GradientMaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAKERS"]


def _recurrent_network(maker: GradientMaker) -> None:
    given = maker.ints("outputs_with_grads")
    maker.enforce(bool(given), "needs argument 'outputs_with_grads'")
    inputs = [*map(maker.GO, given), *maker.op.input, *maker.op.output]
    wanted = [0, *maker.ints("param"), *maker.ints("initial_recurrent_state_ids")]
    maker.add("RecurrentNetworkGradient", inputs, [maker.GI(i) for i in wanted])


MAKERS: dict[str, Callable[[GradientMaker], None]] = {"RecurrentNetwork": _recurrent_network}
