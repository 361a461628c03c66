# SPDX-License-Identifier: Apache-2.0
"""Keras, whose variables hold a tensor of its backend."""

from __future__ import annotations

import sys
from typing import Any

from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.registry import register


def import_(x: Any, copy: bool | None) -> TensorImpl | None:
    """Return the TensorImpl of the value of a ``keras.Variable``.

    Raises BufferError: a symbolic KerasTensor, or a variable that torch tracks.
    """
    keras = sys.modules.get("keras")
    if keras is None:  # a class of another package that has the same name
        return None
    if isinstance(x, keras.Variable):
        value = x.value
        if getattr(value, "requires_grad", False):  # by torch, the backend
            raise BufferError(
                "The Keras variable requires grad, and autograd would not see what is done to its "
                "memory. Use v.value.detach()."
            )
        return import_tensor(value, None, copy)
    if isinstance(x, keras.KerasTensor):
        raise BufferError("A KerasTensor is symbolic: it has no values yet.")
    return None


register("keras", types=("keras.*",), importer=import_, import_takes_copy=True)
