# SPDX-License-Identifier: Apache-2.0
"""Handing tensors to TensorFlow, which holds immutable row-major memory."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from bridge.exchange.compact import compact

__all__ = ["give"]


def give(x: Any, copy: bool | None) -> Any:
    """A ``tf.Tensor`` of the memory of `x`; see bridge.to_tensorflow."""
    if isinstance(x, tf.Tensor):
        return tf.identity(x) if copy is True else x
    tensor = compact(x, copy)
    try:
        # TensorFlow knows legacy capsules, which cannot say read-only; its tensors are
        # immutable, so nothing is lost by not saying it.
        made = tf.experimental.dlpack.from_dlpack(tensor.legacy_capsule())
    except (BufferError, TypeError):
        raise
    except Exception as error:
        raise BufferError(
            f"TensorFlow does not take a tensor of {tensor.dtype()}: {error}"
        ) from error
    return tf.identity(made) if copy is True else made
