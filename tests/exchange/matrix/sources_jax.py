# SPDX-License-Identifier: Apache-2.0
"""JAX arrays."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from tests.exchange.matrix.case import NARROW, WIDE, Case, samples
from tests.exchange.matrix.sources_numpy import EVERY_TYPE, FLOATS


def address(source: Any) -> int:
    return int(source.unsafe_buffer_pointer())


def of_array(name: str, make: Any, values: Any, **fields: Any) -> Case:
    fields.setdefault("address", address)
    return Case(f"jax {name}", make, values=lambda: values, readonly=True, library="jax", **fields)


def typed(name: str, shape: tuple[int, ...] = (2, 4)) -> Case:
    values = samples(name, shape)
    where = {"address": None} if name in NARROW else {}
    return of_array(name, lambda: jnp.asarray(values), values, **where)


def deleted() -> jax.Array:
    array = jnp.arange(3.0)
    array.delete()
    return array


def donated() -> jax.Array:
    array = jnp.arange(3, dtype=jnp.float32)
    jax.jit(lambda x: x + 1, donate_argnums=0)(array).block_until_ready()
    assert array.is_deleted()
    return array


def refused(name: str, make: Any, match: str) -> Case:
    return Case(f"jax {name}", make, library="jax", match=match)


IN_JAX = [name for name in EVERY_TYPE if name not in WIDE and not name.startswith("float6")]

CASES = [
    *(typed(name) for name in IN_JAX),
    of_array("0-d", lambda: jnp.float32(3), np.float32(3)),
    of_array("empty", lambda: jnp.zeros((0,)), np.zeros(0, np.float32)),
    of_array("empty of three dimensions", lambda: jnp.zeros((2, 0, 3)), np.zeros((2, 0, 3), "f4")),
    of_array("weak", lambda: jnp.asarray(3), np.int32(3)),
    of_array("transposed", lambda: jnp.asarray(FLOATS).T, FLOATS.T.copy()),
    of_array("slice", lambda: jnp.arange(10.0)[2:5], np.float32([2, 3, 4])),
    of_array(
        "result under way",
        lambda: jnp.ones((64, 64)) @ jnp.ones((64, 64)),
        np.full((64, 64), 64, np.float32),
    ),
    of_array("of NumPy", lambda: jax.device_put(FLOATS), FLOATS),
    of_array("20 dimensions", lambda: jnp.ones((1,) * 20), np.ones((1,) * 20, "f4")),
    refused("deleted", deleted, "deleted"),
    refused("donated", donated, "deleted or donated"),
    refused("keys", lambda: jax.random.key(0), "key_data"),
    refused("many keys", lambda: jax.random.split(jax.random.key(0), 3), "key_data"),
    refused("packed 4 bits", lambda: jnp.zeros(3, ml_dtypes.int4), "whole bytes"),
    refused("packed 2 bits", lambda: jnp.zeros(3, ml_dtypes.uint2), "whole bytes"),
    refused("packed floats", lambda: jnp.zeros(3, ml_dtypes.float4_e2m1fn), "whole bytes"),
    Case("jax shape", lambda: jax.ShapeDtypeStruct((3,), np.float32), error=TypeError),
    Case("jax module", lambda: jnp, error=TypeError),
    Case("jax function", lambda: jnp.sin, error=TypeError),
    Case("jax device", lambda: jax.devices()[0], error=TypeError),
]
