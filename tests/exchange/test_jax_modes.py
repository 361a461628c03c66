# SPDX-License-Identifier: Apache-2.0
"""JAX: tracers, wide numbers, sharded and donated arrays, and what holds them alive."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at
from tests.helpers.isolate import run_python

jax = pytest.importorskip("jax")
jnp = jax.numpy

ENTRIES: dict[str, Callable[[Any], Any]] = {
    "from_dlpack": bridge.from_dlpack,
    "copy": lambda x: bridge.from_dlpack(x, copy=True),
    "asarray": bridge.asarray,
    "to_numpy": bridge.to_numpy,
    "to_torch": bridge.to_torch,
    "convert": lambda x: bridge.convert(x, "caffe2"),
}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda body: jax.jit(body)(jnp.arange(3.0)),
    "grad": lambda body: jax.grad(lambda x: body(x).sum())(jnp.arange(3.0)),
    "vmap": lambda body: jax.vmap(body)(jnp.ones((2, 3))),
    "jvp": lambda body: jax.jvp(body, (jnp.arange(3.0),), (jnp.ones(3),)),
    "scan": lambda body: jax.lax.scan(lambda c, x: (c, body(x)), 0, jnp.ones((2, 3))),
    "eval_shape": lambda body: jax.eval_shape(body, jnp.arange(3.0)),
    "checkpoint": lambda body: jax.checkpoint(body)(jnp.arange(3.0)),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_tracers_are_refused(transform: str, entry: str) -> None:
    seen = []

    def body(x: Any) -> Any:
        if isinstance(x, jax.core.Tracer):
            with pytest.raises(BufferError, match="jit, grad and vmap"):
                ENTRIES[entry](x)
            assert bridge.to_jax(x) is x
            seen.append(x)
        return x * 2

    TRANSFORMS[transform](body)
    assert seen or transform == "checkpoint"


def enable_x64(on: bool) -> Any:
    """JAX's context for the setting, wherever this release has it."""
    found = getattr(jax, "enable_x64", None)
    if found is None:
        from jax.experimental import enable_x64 as found
    return found(on)


WIDE = ("int64", "uint64", "float64", "complex128")


@pytest.mark.parametrize("name", WIDE)
def test_wide_numbers_need_x64(name: str) -> None:
    x = at.from_blob(np.arange(6).astype(name), (2, 3), options=name).clone()
    for size in (x, x[:0]):
        with pytest.raises(BufferError, match="jax_enable_x64"):
            bridge.to_jax(size)
    with enable_x64(True):
        array = bridge.to_jax(x)
        assert array.dtype == name
        assert array.unsafe_buffer_pointer() == x.data_ptr()
        assert bridge.from_dlpack(array).tolist() == x.tolist()
        again = bridge.to_jax(np.array([2**40 + 1]).astype(name))
        assert np.asarray(again).tolist() == [2**40 + 1]
    with pytest.raises(BufferError, match="jax_enable_x64"):
        bridge.to_jax(x)


def test_writing_to_memory_of_jax_is_refused() -> None:
    array = jnp.arange(3.0)
    x = bridge.from_dlpack(array)
    assert x.readonly
    with pytest.raises(RuntimeError):
        x.zero_()
    assert not bridge.to_numpy(array).flags.writeable
    t = bridge.to_torch(array)
    t.zero_()
    assert array.tolist() == [0, 1, 2]
    shared = bridge.to_torch(array, writable=True)
    assert shared.data_ptr() == array.unsafe_buffer_pointer()


@pytest.mark.parametrize("kind", [jnp.float32, jnp.bfloat16], ids=["by buffer", "by DLPack"])
def test_memory_outlives_the_deletion_of_its_array(kind: Any) -> None:
    array = jnp.arange(3, dtype=kind)
    x = bridge.from_dlpack(array)
    array.delete()
    gc.collect()
    assert [float(value) for value in x.tolist()] == [0, 1, 2]
    with pytest.raises(BufferError, match="deleted"):
        bridge.from_dlpack(array)
    assert bridge.to_jax(array) is array
    with pytest.raises(BufferError):
        bridge.to_jax(array, copy=True)


@pytest.mark.parametrize("kind", [jnp.float32, jnp.bfloat16], ids=["by buffer", "by DLPack"])
def test_memory_is_not_donated_while_it_is_held(kind: Any) -> None:
    array = jnp.arange(1000, dtype=kind)
    x = bridge.from_dlpack(array)
    address = x.data_ptr()
    result = jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    assert result.unsafe_buffer_pointer() != address
    assert float(x[5].item()) == 5


def test_donation_does_not_write_the_memory_of_others() -> None:
    source = at.zeros(1000).numpy()
    frozen = source.view()
    frozen.flags.writeable = False
    array = bridge.to_jax(frozen)
    assert array.unsafe_buffer_pointer() == source.ctypes.data
    jax.jit(lambda x: x + 1, donate_argnums=0)(array).block_until_ready()
    assert not source.any()


@pytest.mark.parametrize("kind", [jnp.float32, jnp.bfloat16], ids=["by buffer", "by DLPack"])
def test_owners_are_freed_with_their_last_view(kind: Any) -> None:
    bridge.from_dlpack(jnp.zeros(1, kind))  # the first of a class is met, by another way
    array = jnp.arange(1000, dtype=kind) + 0
    gone = weakref.ref(array)
    counted = sys.getrefcount(array)
    x = bridge.from_dlpack(array)
    out = bridge.to_numpy(x)
    del x, out
    gc.collect()
    assert sys.getrefcount(array) == counted
    out = bridge.to_numpy(array)
    del array
    gc.collect()
    assert float(out[5]) == 5
    del out
    gc.collect()
    assert gone() is None


def test_memory_handed_out_is_held() -> None:
    x = at.arange(1000, dtype="float32")
    array = bridge.to_jax(x)
    del x
    gc.collect()
    assert float(array.sum()) == 499500


SHARDED = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import numpy as np, jax, bridge
from jax.sharding import Mesh, NamedSharding, PartitionSpec
mesh = Mesh(np.array(jax.devices()), ("a",))
values = np.arange(4, dtype="f4")
for spec in (PartitionSpec("a"), PartitionSpec()):
    for dtype in ("float32", "bfloat16"):
        array = jax.device_put(jax.numpy.asarray(values, dtype), NamedSharding(mesh, spec))
        try:
            bridge.from_dlpack(array)
        except BufferError as error:
            print("addressable_shards" in str(error))
second = jax.device_put(values, jax.devices()[1])
assert bridge.from_dlpack(second).tolist() == [0, 1, 2, 3]
assert bridge.from_dlpack(second).device() == "cpu"
half = second.astype("bfloat16")
assert bridge.to_numpy(half).astype("f4").tolist() == [0, 1, 2, 3]
"""


def test_arrays_on_one_device_are_shared_and_sharded_ones_refused() -> None:
    assert run_python(SHARDED).split() == ["True"] * 4
