# SPDX-License-Identifier: Apache-2.0
"""Clipping gradients by the norm of all of them, as optimizers do."""

from __future__ import annotations

from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions import scopes
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.gradients.gradient_slice import GradientSlice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["norm_ratio"]

_SCOPE = "norm_clipped_grad_update"


def norm_ratio(model: Any, gradients: list[Any], limit: float, devices: dict[str, Any]) -> Any:
    """Add what computes ``limit / max(norm, limit)`` of all gradients together; give that blob.

    devices: DeviceOptions of the gradients, by blob.
    Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
    """
    net = model.net
    squares = []
    with scopes.NameScope(_SCOPE):
        for number, gradient in enumerate(gradients):
            blob = gradient.values if isinstance(gradient, GradientSlice) else gradient
            with scopes.DeviceScope(devices.get(str(blob)) or caffe2_pb2().DeviceOption()):
                total = net.SumSqrElements(blob, f"grad_{number}_squared_sum")
                squares.append(net.EnsureCPUOutput(total))
        with scopes.DeviceScope(DeviceOption(0)):
            total = net.Sum(squares, "grad_squared_full_sum")
            norm = net.Pow(total, "global_norm", exponent=0.5)
            largest = model.param_init_net.ConstantFill([], "clip_norm", shape=[], value=limit)
            most = net.Max([norm, largest], "max_norm")
            return net.Div([largest, most], "norm_ratio")
