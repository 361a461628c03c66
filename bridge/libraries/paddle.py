# SPDX-License-Identifier: Apache-2.0
"""Paddle, whose tensors may be sparse, or be tracked by autograd."""

from __future__ import annotations

import sys
from typing import Any

from bridge.exchange.library_fit import fit, refuse_types
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    """Return `x`, whose exchange table checks neither gradients nor its kind."""
    if not x.stop_gradient:
        raise BufferError(
            "The Paddle tensor requires grad (stop_gradient is False), and autograd would not see "
            "what is done to its memory. Use x.detach()."
        )
    if not x.is_dense():
        raise BufferError(
            "A sparse Paddle tensor is not one block of memory. Use x.to_dense(), or x.values()."
        )
    return x


def _export(tensor: Any) -> Any:
    if "paddle" not in sys.modules and "tensorflow" in sys.modules:
        # Paddle 3.3 with TensorFlow 2.21: signal 11 in the loader
        raise ImportError(
            "Importing Paddle after TensorFlow ends the process. Import Paddle first."
        )
    import paddle

    # Paddle's uint16 is its name for bfloat16
    refuse_types(tensor, "Paddle", "uint16")
    return paddle.from_dlpack(fit(tensor, writable=True))


register("paddle", types=("paddle.Tensor",), importer=_import, exporter=_export)
