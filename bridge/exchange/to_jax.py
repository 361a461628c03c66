# SPDX-License-Identifier: Apache-2.0
"""Handing tensors to JAX, which holds immutable row-major memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.dlpack

from bridge.exchange.compact import compact

__all__ = ["give"]


def give(x: Any, copy: bool | None) -> Any:
    """A ``jax.Array`` of the memory of `x`; see bridge.to_jax."""
    if isinstance(x, jax.Array):
        return x.copy() if copy is True else x
    tensor = compact(x, copy)
    dtype = tensor.dtype()
    if dtype.name in ("int64", "uint64", "float64", "complex128") and not jax.config.jax_enable_x64:
        raise BufferError(
            f"JAX would cut {dtype} to 32 bits while jax_enable_x64 is off. Turn it on with "
            "jax.config.update('jax_enable_x64', True), or convert the tensor first."
        )
    try:
        made = jax.dlpack.from_dlpack(tensor)
    except (BufferError, TypeError):
        raise
    except Exception as error:
        raise BufferError(f"JAX does not take a tensor of {dtype}: {error}") from error
    return made.copy() if copy is True else made
