# SPDX-License-Identifier: Apache-2.0
"""Tensors in and out, over the fastest that torch, NumPy and tvm-ffi offer for it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import tvm_ffi

import bridge
from bridge import at
from tests.benchmarks.harness import Effort, Row, compare, loop


def rows(effort: Effort) -> Iterator[Row]:
    """Measure each route on a tensor of six elements: what is left is the conversion itself."""
    t = torch.zeros((2, 3))
    n = np.zeros((2, 3), np.float32)
    owned = at.zeros((2, 3))
    tvm = tvm_ffi.from_dlpack(t)

    yield Row(
        "`from_dlpack(torch)`",
        "`tvm_ffi.from_dlpack`",
        0.95,
        0.8,
        compare(
            loop("from_dlpack(t)", from_dlpack=bridge.from_dlpack, t=t),
            loop("from_dlpack(t)", from_dlpack=tvm_ffi.from_dlpack, t=t),
            effort,
        ),
    )
    yield Row(
        "`from_dlpack(numpy)`",
        "`torch.from_numpy`",
        0.25,
        0.15,
        compare(
            loop("from_dlpack(n)", from_dlpack=bridge.from_dlpack, n=n),
            loop("from_numpy(n)", from_numpy=torch.from_numpy, n=n),
            effort,
        ),
    )
    yield Row(
        "`to_torch()` of memory that bridge owns",
        "`t.detach()`",
        1.1,
        1.0,
        compare(loop("x.to_torch()", x=owned), loop("t.detach()", t=t), effort),
    )
    yield Row(
        "`numpy()`",
        "`t.numpy()`",
        0.25,
        0.15,
        compare(loop("x.numpy()", x=owned), loop("t.numpy()", t=t), effort),
    )
    yield Row(
        "`np.from_dlpack(x)`",
        "the same of a tvm-ffi tensor",
        1.0,
        0.9,
        compare(
            loop("from_dlpack(x)", from_dlpack=np.from_dlpack, x=owned),
            loop("from_dlpack(x)", from_dlpack=np.from_dlpack, x=tvm),
            effort,
        ),
    )
    yield from _jax(effort)
    yield from _tensorflow(effort)


def _jax(effort: Effort) -> Iterator[Row]:
    try:
        import jax
    except ImportError:
        return
    j = jax.numpy.zeros((2, 3))
    tvm = tvm_ffi.from_dlpack(torch.zeros((2, 3)))
    yield Row(
        "`from_dlpack(jax)`",
        "`j.__dlpack__()`",
        0.5,
        0.25,
        compare(
            loop("from_dlpack(j)", from_dlpack=bridge.from_dlpack, j=j),
            loop("j.__dlpack__()", j=j),
            effort,
        ),
    )
    yield Row(
        "`to_jax`",
        "`jax.dlpack.from_dlpack` of a tvm-ffi tensor",
        1.15,
        1.05,
        compare(
            loop("to_jax(x)", to_jax=bridge.to_jax, x=at.zeros((2, 3))),
            loop("from_dlpack(x)", from_dlpack=jax.dlpack.from_dlpack, x=tvm),
            effort,
        ),
    )


def _tensorflow(effort: Effort) -> Iterator[Row]:
    try:
        import tensorflow as tf
    except ImportError:
        return
    dlpack = tf.experimental.dlpack
    t = tf.zeros((2, 3))
    x = at.zeros((2, 3))
    yield Row(
        "`from_dlpack(tf)`",
        "`tf.experimental.dlpack.to_dlpack`",
        1.5,
        1.15,
        compare(
            loop("from_dlpack(t)", from_dlpack=bridge.from_dlpack, t=t),
            loop("to_dlpack(t)", to_dlpack=dlpack.to_dlpack, t=t),
            effort,
        ),
    )
    yield Row(
        "`to_tensorflow`",
        "its `from_dlpack` of a capsule",
        1.0,
        0.85,
        compare(
            loop("to_tensorflow(x)", to_tensorflow=bridge.to_tensorflow, x=x),
            loop("from_dlpack(x.__dlpack__())", from_dlpack=dlpack.from_dlpack, x=x),
            effort,
        ),
    )
