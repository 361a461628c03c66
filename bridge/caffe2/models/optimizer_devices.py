# SPDX-License-Identifier: Apache-2.0
"""The device of a parameter, and engines, by which Caffe2's other modules choose an optimizer.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.gradients.gradient_slice import GradientSlice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FP16_ENGINES", "get_param_device"]

# The engines that keep the states of a sparse optimizer in half precision.
FP16_ENGINES = ["SIMD_Q_FP16", "SIMD_Q_STOC_FP16", "SIMD_Q_STOC_MKL_FP16"]


def get_param_device(
    param_name: str,
    grad: Any,
    param_to_device: dict[str, Any] | None = None,
    default_device: Any = None,
) -> Any:
    """Return the device of a parameter: its own, else that of its gradient, else `default_device`.

    grad: a blob or a GradientSlice. param_to_device: the devices of blobs, by name, as
    `InferBlobDevices` returns them.

    Raises EnforceNotMet, also an AssertionError: none of them is known.
    """
    blobs = list(grad) if isinstance(grad, GradientSlice) else [grad]
    known = param_to_device or {}
    if isinstance(grad, GradientSlice):
        blobs.reverse()  # the values before the indices
    for name in (param_name, *map(str, blobs)):
        if name in known:
            return known[name]
    if default_device is None:
        raise EnforceAssertionError(
            f"Cannot infer device for {param_name}: no op creates it", "get_param_device"
        )
    return default_device
