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
    if tensor.readonly:
        # TensorFlow takes legacy capsules, which cannot say read-only.
        if copy is False:
            raise BufferError(
                "The memory is read-only, which the DLPack that TensorFlow reads cannot say. "
                "Allow a copy with copy=None."
            )
        tensor = tensor.clone()
    try:
        made = tf.experimental.dlpack.from_dlpack(tensor.__dlpack__())
    except (BufferError, TypeError):
        raise
    except Exception as error:
        raise BufferError(
            f"TensorFlow does not take a tensor of {tensor.dtype()}: {error}"
        ) from error
    return tf.identity(made) if copy is True else made
