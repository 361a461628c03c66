# SPDX-License-Identifier: Apache-2.0
"""``convert(x, like=y)`` goes to the library and the device of y."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2
from tests.helpers.isolate import run_python

jax = pytest.importorskip("jax")
jnp = jax.numpy
tf = pytest.importorskip("tensorflow")

LIKE = {
    "numpy": (np.zeros(1), np.ndarray),
    "numpy scalar": (np.float32(1), np.ndarray),
    "torch": (torch.zeros(1), torch.Tensor),
    "torch with grad": (torch.zeros(1, requires_grad=True), torch.Tensor),
    "jax": (jnp.zeros(1), jax.Array),
    "tensorflow": (tf.zeros(1), tf.Tensor),
    "tensorflow variable": (tf.Variable([1.0]), tf.Tensor),
    "at": (at.zeros(1), at.Tensor),
    "caffe2": (caffe2.Tensor([1], [1.0]), caffe2.Tensor),
}


@pytest.mark.parametrize(("like", "cls"), LIKE.values(), ids=LIKE)
def test_goes_to_the_library(like: Any, cls: type) -> None:
    x = np.arange(16, dtype=np.float32)
    out = bridge.convert({"a": x, "again": (x, 5)}, like=like)
    assert isinstance(out["a"], cls)
    assert out["a"] is out["again"][0]
    assert bridge.to_numpy(bridge.convert(x, like=like)).tolist() == x.tolist()
    copied = bridge.convert(x, like=like, copy=True)
    assert not bridge.shares_memory(copied, x)


def test_shares_and_keeps_options() -> None:
    frozen = jnp.zeros(16)
    out = bridge.convert([frozen], like=torch.zeros(1), readonly=True, copy=False)
    assert bridge.shares_memory(out[0], frozen)
    out = bridge.convert(frozen, like=torch.zeros(1), writable=True)
    assert bridge.shares_memory(out, frozen)
    tensor = torch.ones(2)
    assert bridge.convert(tensor, like=torch.zeros(1)) is tensor
    with pytest.raises(BufferError, match=r"^at \[0\]: "):
        bridge.convert([frozen], like=torch.zeros(1), copy=False)


@pytest.mark.parametrize("like", [[torch.zeros(1)], {}, 5, "torch", b"ab", torch.float32])
def test_like_is_one_tensor(like: Any) -> None:
    with pytest.raises(TypeError, match="like= is one tensor"):
        bridge.convert(np.zeros(1), like=like)


def test_convert_takes_a_name_or_like_and_not_both() -> None:
    with pytest.raises(TypeError, match="not both"):
        bridge.convert(np.zeros(1), "torch", like=torch.zeros(1))
    with pytest.raises(TypeError, match="Give the name of a library"):
        bridge.convert(np.zeros(1))


def test_a_meta_tensor_has_no_device_to_go_to() -> None:
    with pytest.raises(BufferError, match="values would be lost"):
        bridge.convert(np.zeros(1), like=torch.zeros(1, device="meta"))


def test_a_capsule_is_used_once() -> None:
    capsule = torch.ones(2).__dlpack__()
    assert bridge.convert(capsule, like=jnp.zeros(1)).tolist() == [1, 1]


def test_goes_to_one_of_several_devices() -> None:
    program = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, jax.numpy as jnp, numpy as np, bridge
there = jax.device_put(jnp.zeros(2), jax.devices()[2])
x = np.arange(16, dtype=np.float32)
out = bridge.convert({"a": x}, like=there)["a"]
assert out.devices() == there.devices(), out.devices()
assert out.tolist() == x.tolist()
assert bridge.convert(there, like=there) is there
try:
    bridge.convert(x, like=there, copy=False)
except BufferError as error:
    assert "Allow" in str(error)
else:
    raise AssertionError
mesh = jax.sharding.Mesh(np.array(jax.devices()), "x")
spread = jax.device_put(jnp.zeros(4), jax.sharding.NamedSharding(mesh, jax.P("x")))
try:
    bridge.convert(x, like=spread)
except BufferError as error:
    assert "sharded over 4 devices" in str(error), error
else:
    raise AssertionError
"""
    run_python(program)
