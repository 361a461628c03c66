# SPDX-License-Identifier: Apache-2.0
"""TensorFlow: strings, variables, ranks, alignment, and what holds its memory alive."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10
from tests.exchange.matrix.case import aligned
from tests.helpers.isolate import isolated

tf = pytest.importorskip("tensorflow")


@pytest.mark.parametrize("values", [b"one", [b"a", b"bcd", b""], [[b"a"], [b"\x00\xff"]], []])
def test_strings_are_copied(values: Any) -> None:
    tensor = tf.constant(values, tf.string)
    for x in (bridge.from_dlpack(tensor), bridge.asarray(tensor), bridge.convert(tensor, "at")):
        assert x.dtype() == c10.string
        assert tuple(x.sizes()) == tuple(tensor.shape)
        assert (x.item() if isinstance(values, bytes) else x.tolist()) == values
    back = bridge.to_tensorflow(x)
    assert back.dtype == tf.string
    assert back.shape == tensor.shape
    assert back.numpy().tolist() == values if tensor.shape.rank else back.numpy() == values
    assert bridge.to_tensorflow(tensor) is tensor
    for refusing in (bridge.from_dlpack, bridge.to_torch, bridge.to_numpy):
        with pytest.raises(BufferError):
            refusing(tensor, copy=False)
    with pytest.raises(BufferError):
        bridge.to_tensorflow(x, copy=False)
    for refusing in (bridge.to_torch, bridge.to_numpy):
        with pytest.raises(BufferError):
            refusing(tensor)


def test_a_variable_gives_its_value() -> None:
    variable = tf.Variable([1.0, 2.0])
    x = bridge.from_dlpack(variable)
    value = bridge.to_tensorflow(variable)
    assert isinstance(value, tf.Tensor)
    variable.assign_add([1.0, 1.0])
    variable.scatter_nd_update([[0]], [9.0])
    assert x.tolist() == [1, 2], "a value is not what the variable becomes"
    assert value.numpy().tolist() == [1, 2]
    assert bridge.from_dlpack(variable).tolist() == [9, 3]
    assert x.readonly


def test_variables_without_a_value_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with tf.Graph().as_default():
        of_a_graph = tf.Variable(1.0)
    with pytest.raises(BufferError, match="no value here"):
        bridge.from_dlpack(of_a_graph)

    def value(self: Any) -> Any:
        raise tf.errors.FailedPreconditionError(None, None, "read before it was written")

    variable = tf.Variable(1.0)
    monkeypatch.setattr(type(variable), "value", value)
    for refusing in (bridge.from_dlpack, bridge.to_numpy, bridge.to_tensorflow):
        with pytest.raises(BufferError, match=r"no value.*before it was written"):
            refusing(variable)


def test_tensorflow_takes_254_dimensions() -> None:
    assert bridge.to_tensorflow(at.zeros((1,) * 254)).shape.rank == 254
    with pytest.raises(BufferError, match="254"):
        bridge.to_tensorflow(at.zeros((1,) * 255))


@pytest.mark.parametrize("offset", [4, 8, 16, 32])
def test_unaligned_memory_is_copied_and_works(offset: int) -> None:
    source = aligned(np.arange(64, dtype=np.float32), offset)
    tensor = bridge.to_tensorflow(source)
    assert float(tf.reduce_sum(tf.exp(tensor * 0))) == 64
    with pytest.raises(BufferError, match="aligned"):
        bridge.to_tensorflow(source, copy=False)


def test_symbolic_tensors_are_refused_inside_a_function() -> None:
    seen = []

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def body(x: Any) -> Any:
        assert bridge.to_tensorflow(x) is x
        with pytest.raises(BufferError, match="py_function"):
            bridge.to_numpy(x)
        # Constants of the bridge's are as good as TensorFlow's own.
        seen.append(bridge.from_dlpack(tf.constant([1.0]) if tf.executing_eagerly() else b"abc"))
        return x

    body(tf.zeros(2))
    assert seen


def test_operations_of_tensorflow_do_not_write_our_memory() -> None:
    held = aligned(np.zeros(1000, np.float32))
    held.flags.writeable = False
    compute = tf.function(lambda x: tf.exp(x + 1.0), autograph=False)
    assert float(compute(bridge.to_tensorflow(held))[0]) > 2
    assert float(tf.nn.relu(bridge.to_tensorflow(held))[0]) == 0
    tf.Variable(bridge.to_tensorflow(held)).assign_add(tf.ones(1000))
    tf.tensor_scatter_nd_update(bridge.to_tensorflow(held), [[0]], [5.0])
    assert not held.any()


def test_memory_is_held_both_ways() -> None:
    x = bridge.from_dlpack(tf.range(1000.0) + 0.0)
    gc.collect()
    assert x[999].item() == 999
    tensor = bridge.to_tensorflow(at.arange(1000, dtype="float32"))
    gc.collect()
    assert float(tf.reduce_sum(tensor)) == 499500


def test_allocations_for_tensorflow_come_back() -> None:
    stats = c10.GetAllocator("cpu").stats
    gc.collect()
    before = stats.allocated_bytes
    tensors = [bridge.to_tensorflow(at.zeros(1000)) for _ in range(10)]
    assert stats.allocated_bytes - before >= 40_000
    del tensors
    gc.collect()
    assert stats.allocated_bytes == before


@isolated
def test_the_first_tensor_may_be_symbolic() -> None:
    @tf.function
    def traced(x: Any) -> Any:
        with pytest.raises(BufferError, match=r"tf\.py_function"):
            bridge.from_dlpack(x)
        return x

    traced(tf.ones(3))
    with tf.Graph().as_default(), pytest.raises(BufferError, match=r"tf\.py_function"):
        bridge.from_dlpack(tf.constant(1.0))
    assert bridge.from_dlpack(tf.ones(3)).tolist() == [1, 1, 1]
    assert bridge.to_tensorflow(at.ones(2)).numpy().tolist() == [1, 1]


def test_objects_of_tensorflow_that_are_not_tensors_are_refused() -> None:
    for x in (tf.TensorShape([2]), tf.float32, tf.data.Dataset.range(3)):
        for call in (bridge.from_dlpack, bridge.explain, lambda x: bridge.shares_memory(x, x)):
            with pytest.raises(TypeError):
                call(x)
