# SPDX-License-Identifier: Apache-2.0
"""JAX, TensorFlow and Arrow: memory is flat over many cycles of each route.

In a process for each, whose memory is nobody else's.
"""

from __future__ import annotations

import sys

import pytest

from tests.helpers.isolate import run_python

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="memory is read from /proc"
)

MEASURE = """
import contextlib, gc, os
import numpy as np
import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace

CYCLES = 2000
NUMEL = 4096
OURS = at.zeros(NUMEL)
ARRAY = OURS.numpy()
FROZEN = ARRAY.view()
FROZEN.flags.writeable = False
ODD = np.zeros(NUMEL + 1, np.float32)[1:]

def refused(call, *arguments, **options):
    with contextlib.suppress(BufferError):
        call(*arguments, **options)
        raise AssertionError("not refused")

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def measure(routes):
    gc.collect()
    gc.freeze()     # the frameworks' own objects, which are many
    for name, route in routes.items():
        for _ in range(CYCLES):
            route()
        gc.collect()
        before = resident()
        for _ in range(CYCLES):
            route()
        gc.collect()
        grown = resident() - before
        # 16 KiB of data in each cycle: one cycle in fifty that leaves it is seen
        if grown > 640 * 1024:
            print(f"{name}: {grown} bytes")
"""

JAX = """
import jax.numpy as jnp
A = jnp.zeros(NUMEL)
HALF = jnp.zeros(NUMEL, jnp.bfloat16)
GONE = jnp.zeros(NUMEL)
GONE.delete()
KEPT = bridge.from_dlpack(A)
measure({
    "in": lambda: bridge.from_dlpack(A),
    "in by DLPack": lambda: bridge.from_dlpack(HALF),
    "new array in": lambda: bridge.from_dlpack(A + 1),
    "in and out": lambda: bridge.to_jax(KEPT),
    "to NumPy": lambda: bridge.to_numpy(A),
    "to torch": lambda: bridge.to_torch(A),
    "fed": lambda: workspace.FeedBlob("x", A),
    "out": lambda: bridge.to_jax(OURS),
    "out of read-only memory": lambda: bridge.to_jax(FROZEN),
    "out by a copy": lambda: bridge.to_jax(ODD),
    "deleted": lambda: refused(bridge.from_dlpack, GONE),
    "wide": lambda: refused(bridge.to_jax, np.zeros(NUMEL)),
    "not aligned": lambda: refused(bridge.to_jax, ODD, copy=False),
})
"""

TENSORFLOW = """
# TensorFlow greets on standard error.
aside, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
os.dup2(nowhere, 2)
import tensorflow as tf
tf.zeros(1)
os.dup2(aside, 2)
T = tf.zeros(NUMEL)
HALF = tf.zeros(NUMEL, tf.bfloat16)
EIGHT = tf.cast(T, tf.dtypes.as_dtype("float8_e5m2"))
VARIABLE = tf.Variable(T)
STRINGS = tf.constant(["a", "b" * 100])
QUANTIZED = tf.bitcast(tf.zeros(NUMEL, tf.int8), tf.qint8)
KEPT = bridge.from_dlpack(T)
measure({
    "in": lambda: bridge.from_dlpack(T),
    "half in": lambda: bridge.from_dlpack(HALF),
    "eighth in": lambda: bridge.from_dlpack(EIGHT),
    "new tensor in": lambda: bridge.from_dlpack(T + 1),
    "variable in": lambda: bridge.from_dlpack(VARIABLE),
    "strings in": lambda: bridge.from_dlpack(STRINGS),
    "in and out": lambda: bridge.to_tensorflow(KEPT),
    "to NumPy": lambda: bridge.to_numpy(T),
    "fed": lambda: workspace.FeedBlob("x", T),
    "out": lambda: bridge.to_tensorflow(OURS),
    "out of read-only memory": lambda: bridge.to_tensorflow(FROZEN),
    "out by a copy": lambda: bridge.to_tensorflow(ODD),
    "quantized": lambda: refused(bridge.from_dlpack, QUANTIZED),
    "too many dimensions": lambda: refused(bridge.to_tensorflow, at.zeros((1,) * 255)),
})
"""

ARROW = """
import pyarrow as pa
A = pa.array(ARRAY)
NULLS = pa.array([None, 1.0] * (NUMEL // 2))
T = pa.Tensor.from_numpy(ARRAY)
B = pa.py_buffer(bytes(4 * NUMEL))
measure({
    "in": lambda: bridge.from_dlpack(A),
    "slice in": lambda: bridge.from_dlpack(A[5:]),
    "new array in": lambda: bridge.from_dlpack(pa.array(ARRAY)),
    "tensor in": lambda: bridge.from_dlpack(T),
    "buffer in": lambda: bridge.from_dlpack(B),
    "to NumPy": lambda: bridge.to_numpy(A),
    "to torch": lambda: bridge.to_torch(A),
    "fed": lambda: workspace.FeedBlob("x", A),
    "nulls": lambda: refused(bridge.from_dlpack, NULLS),
})
"""


@pytest.mark.parametrize(
    ("module", "routes"), [("jax", JAX), ("tensorflow", TENSORFLOW), ("pyarrow", ARROW)]
)
def test_routes_leave_nothing(module: str, routes: str) -> None:
    pytest.importorskip(module)
    assert run_python(MEASURE + routes) == ""
