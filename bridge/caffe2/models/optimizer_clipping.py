# SPDX-License-Identifier: Apache-2.0
"""Clipping of gradients by the norm of all of them together."""

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
    """Add operators that compute ``limit / max(norm, limit)``; return a reference to the result.

    The norm is that of all `gradients` together. devices: the DeviceOption of each gradient, by
    the name of its blob. Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
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
            squared_norm = net.Sum(squares, "grad_squared_full_sum")
            norm = net.Pow(squared_norm, "global_norm", exponent=0.5)
            clip = model.param_init_net.ConstantFill([], "clip_norm", shape=[], value=limit)
            largest = net.Max([norm, clip], "max_norm")
            return net.Div([clip, largest], "norm_ratio")
