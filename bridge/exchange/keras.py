# SPDX-License-Identifier: Apache-2.0
"""Keras, whose variables hold a tensor of the framework that runs it."""

from __future__ import annotations

from typing import Any

from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.ingest import ingest

__all__ = ["bring"]


def bring(x: Any, copy: bool | None) -> TensorImpl | None:
    """The TensorImpl of the value of a ``keras.Variable``.

    Raises BufferError: a symbolic KerasTensor.
    """
    import keras

    if isinstance(x, keras.Variable):
        return ingest(x.value, None, copy)
    if isinstance(x, keras.KerasTensor):
        raise BufferError("A KerasTensor stands for values that there are not yet.")
    return None
