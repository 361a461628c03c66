# SPDX-License-Identifier: Apache-2.0
"""Tensors in and out, over the fastest that torch, NumPy and tvm-ffi offer for it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

import numpy as np
import torch
import tvm_ffi

import bridge
from bridge import at
from tests.benchmarks.harness import Case, Effort, Row, loop, measured


def rows(effort: Effort) -> Iterator[Row]:
    """Measure each route on a tensor of six elements: what is left is the conversion itself."""
    for cases in (_torch_and_numpy, _jax, _tensorflow, _arrow):
        yield from measured(cases(), effort)


def _torch_and_numpy() -> Iterator[Case]:
    t = torch.zeros((2, 3))
    n = np.zeros((2, 3), np.float32)
    owned = at.zeros((2, 3))
    tvm = tvm_ffi.from_dlpack(t)
    yield Case(
        "`from_dlpack(torch)`",
        "`tvm_ffi.from_dlpack`",
        0.95,
        0.8,
        loop("from_dlpack(t)", from_dlpack=bridge.from_dlpack, t=t),
        loop("from_dlpack(t)", from_dlpack=tvm_ffi.from_dlpack, t=t),
    )
    yield Case(
        "`from_dlpack(numpy)`",
        "`torch.from_numpy`",
        0.25,
        0.15,
        loop("from_dlpack(n)", from_dlpack=bridge.from_dlpack, n=n),
        loop("from_numpy(n)", from_numpy=torch.from_numpy, n=n),
    )
    yield Case(
        "`to_torch()` of memory that bridge owns",
        "`t.detach()`",
        1.1,
        1.0,
        loop("x.to_torch()", x=owned),
        loop("t.detach()", t=t),
    )
    yield Case(
        "`numpy()`",
        "`t.numpy()`",
        0.25,
        0.15,
        loop("x.numpy()", x=owned),
        loop("x.numpy()", x=t),
    )
    yield Case(
        "`np.from_dlpack(x)`",
        "the same of a tvm-ffi tensor",
        1.0,
        0.9,
        loop("from_dlpack(x)", from_dlpack=np.from_dlpack, x=owned),
        loop("from_dlpack(x)", from_dlpack=np.from_dlpack, x=tvm),
    )


def _jax() -> Iterator[Case]:
    try:
        import jax
    except ImportError:
        return
    j = jax.numpy.zeros((2, 3))
    tvm = tvm_ffi.from_dlpack(torch.zeros((2, 3)))
    yield Case(
        "`from_dlpack(jax)`",
        "`j.__dlpack__()`",
        0.5,
        0.25,
        loop("from_dlpack(j)", from_dlpack=bridge.from_dlpack, j=j),
        loop("j.__dlpack__()", j=j),
    )
    yield Case(
        "`to_jax`",
        "`jax.dlpack.from_dlpack` of a tvm-ffi tensor",
        1.15,
        1.05,
        loop("to_jax(x)", to_jax=bridge.to_jax, x=at.zeros((2, 3))),
        loop("from_dlpack(x)", from_dlpack=jax.dlpack.from_dlpack, x=tvm),
    )


def _tensorflow() -> Iterator[Case]:
    try:
        import tensorflow as tf
    except ImportError:
        return
    dlpack = tf.experimental.dlpack
    t = tf.zeros((2, 3))
    x = at.zeros((2, 3))
    yield Case(
        "`from_dlpack(tf)`",
        "`tf.experimental.dlpack.to_dlpack`",
        1.5,
        1.15,
        loop("from_dlpack(t)", from_dlpack=bridge.from_dlpack, t=t),
        loop("to_dlpack(t)", to_dlpack=dlpack.to_dlpack, t=t),
    )
    yield Case(
        "`to_tensorflow`",
        "its `from_dlpack` of a capsule",
        1.0,
        0.85,
        loop("to_tensorflow(x)", to_tensorflow=bridge.to_tensorflow, x=x),
        loop("from_dlpack(x.__dlpack__())", from_dlpack=dlpack.from_dlpack, x=x),
    )
    torch_tensor = torch.zeros((2, 3))
    yield Case(
        "`to_tensorflow(torch)`",
        "its `from_dlpack` of torch's capsule",
        1.2,
        1.0,
        loop("to_tensorflow(t)", to_tensorflow=bridge.to_tensorflow, t=torch_tensor),
        loop(
            "from_dlpack(to_dlpack(t))",
            from_dlpack=dlpack.from_dlpack,
            to_dlpack=torch.utils.dlpack.to_dlpack,
            t=torch_tensor,
        ),
    )


def _arrow() -> Iterator[Case]:
    for library in ("pyarrow", "polars"):
        try:
            module = importlib.import_module(library)
        except ImportError:
            continue
        make = module.array if library == "pyarrow" else module.Series
        column = make(np.zeros(6, np.float32))
        yield Case(
            f"`from_dlpack({library})`",
            "`np.asarray` of the same",
            0.95,
            0.9,
            loop("from_dlpack(x)", from_dlpack=bridge.from_dlpack, x=column),
            loop("asarray(x)", asarray=np.asarray, x=column),
        )
