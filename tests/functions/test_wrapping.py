# SPDX-License-Identifier: Apache-2.0
"""`bridge.wrap`: what it takes, what arrives, what comes back, and what it refuses."""

from __future__ import annotations

import traceback
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10
from tests.helpers.isolate import run_python
from tests.helpers.leaks import leaves_nothing, needs_proc

jax = pytest.importorskip("jax")
jnp = jax.numpy

Point = namedtuple("Point", "x y")


@dataclass
class Batch:
    """A container whose fields are leaves."""

    image: Any
    label: Any


def test_names_are_checked_when_it_is_called() -> None:
    with pytest.raises(ValueError, match=r"torch, jax, tensorflow, paddle, numpy, cupy, not 'foo'"):
        bridge.wrap(len, "foo")
    with pytest.raises(ValueError, match=r"returns is one of torch, numpy.*not 'foo'"):
        bridge.wrap(len, "torch", returns="foo")
    with pytest.raises(TypeError, match="takes a function, not 3"):
        bridge.wrap(3, "torch")  # type: ignore[arg-type]


def test_importing_the_bridge_imports_no_wrapper() -> None:
    run_python(
        "import sys, bridge\n"
        "assert 'bridge.functions' not in sys.modules\n"
        "bridge.wrap(len, 'jax')\n"
        "assert 'jax' not in sys.modules and 'torch' not in sys.modules\n"
    )


def test_the_function_stays_visible() -> None:
    def scale(x: Any) -> Any:
        """Scale."""
        return x * 2

    wrapped = bridge.wrap(scale, "torch")
    assert wrapped.__name__ == "scale"
    assert wrapped.__doc__ == "Scale."
    assert wrapped.__wrapped__ is scale  # type: ignore[attr-defined]


def test_without_tensors_nothing_changes() -> None:
    marker = object()
    assert bridge.wrap(lambda x: x, "torch")(marker) is marker
    assert isinstance(bridge.wrap(lambda: torch.ones(2), "torch")(), torch.Tensor)
    assert isinstance(bridge.wrap(lambda: torch.ones(2), "torch", returns="numpy")(), np.ndarray)
    assert bridge.wrap(lambda x: x, "torch")(b"ab") == b"ab"


def test_trees_go_in_and_come_out() -> None:
    def double(batch: Any, extra: Any, *, scale: float) -> Any:
        assert isinstance(batch["b"].image, jax.Array)
        return OrderedDict(
            p=Point(batch["b"].image * scale, batch["b"].label),
            rest=[extra[0] + 1, ("text", None, 5, 2.5)],
        )

    wrapped = bridge.wrap(double, "jax")
    found = wrapped({"b": Batch(torch.ones(2), "cat")}, (torch.zeros(3),), scale=2.0)
    assert type(found) is OrderedDict
    assert isinstance(found["p"], Point)
    assert found["p"].x.tolist() == [2, 2]
    assert found["p"].y == "cat"
    assert isinstance(found["rest"][0], torch.Tensor)
    assert found["rest"][1] == ("text", None, 5, 2.5)


def test_one_tensor_twice_stays_one() -> None:
    x = np.ones(2)
    seen = []
    bridge.wrap(lambda a, b: seen.append(a is b), "torch")(x, x)
    assert seen == [True]
    first, second = bridge.wrap(lambda x: (x,) * 2, "torch")(x)
    assert first is second


def test_a_container_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [torch.ones(1)]
    loop.append(loop)
    with pytest.raises(ValueError, match="contains itself"):
        bridge.wrap(lambda x: x, "numpy")(loop)


def test_numpy_scalars_that_are_returned_are_tensors() -> None:
    total = bridge.wrap(lambda x: x.sum(), "numpy")(torch.ones(3))
    assert isinstance(total, torch.Tensor)
    assert total.shape == ()
    assert bridge.wrap(lambda x: float(x.sum()), "numpy")(torch.ones(3)) == 3.0


def test_arguments_are_shared() -> None:
    addresses = []
    x = torch.ones(64)
    bridge.wrap(lambda a: addresses.append(a.ctypes.data), "numpy")(x)
    bridge.wrap(lambda a: addresses.append(a.data_ptr()), "torch")(x.numpy())
    assert addresses == [x.data_ptr()] * 2


def test_arguments_of_jax_cannot_be_written() -> None:
    x = jnp.ones(3)
    with pytest.raises(c10.EnforceNotMet):
        bridge.wrap(lambda a: a.add_(1), "torch")(x)
    with pytest.raises(ValueError, match="read-only"):
        bridge.wrap(lambda a: np.add(a, 1, out=a), "numpy")(x)
    assert x.tolist() == [1, 1, 1]


@pytest.mark.parametrize("library", ["torch", "numpy", "jax"])
def test_a_result_is_not_an_alias_of_a_constant_or_an_argument(library: str) -> None:
    constant = bridge.convert(np.ones(64, "float32"), library)
    x = np.ones(64, "float32") if library == "torch" else torch.ones(64)
    wrapped = bridge.wrap(lambda a: (constant, a), library)
    for result in wrapped(x):
        result += 1
        assert result.tolist() == [2] * 64
    assert np.asarray(constant).tolist() == [1] * 64
    assert x.tolist() == [1] * 64


def test_two_results_of_one_value_have_memory_of_their_own() -> None:
    first, second = bridge.wrap(lambda x: (x + 1, x + 1), "jax")(torch.ones(64))
    first.add_(1)
    assert second.tolist() == [2] * 64


def test_arguments_that_are_not_tensors_are_static_in_jax() -> None:
    traces = []

    def scale(x: Any, factor: float, mode: str = "times") -> Any:
        traces.append(factor)
        return x * factor if mode == "times" else x + factor

    wrapped = bridge.wrap(scale, "jax")
    x = torch.ones(2)
    assert wrapped(x, 2).tolist() == wrapped(x, 2).tolist() == [2, 2]
    assert len(traces) == 1
    assert wrapped(x, 3.0, mode="plus").tolist() == [4, 4]
    assert wrapped(x, 0.0).tolist() == [0, 0]
    assert torch.signbit(wrapped(x, -0.0)).all()
    with pytest.raises(ValueError, match="Non-hashable static"):
        wrapped(x, {1, 2})
    with pytest.raises(jax.errors.TracerBoolConversionError):
        bridge.wrap(lambda x: x if x.sum() > 0 else -x, "jax")(x)


def test_a_jitted_function_traces_the_numbers_it_would_trace() -> None:
    traces = []

    def scale(x: Any, factor: Any, power: int = 1) -> Any:
        traces.append(power)
        return x * factor**power

    wrapped = bridge.wrap(jax.jit(scale, static_argnames="power"), "jax")
    x = torch.full((2,), 3.0, requires_grad=True)
    for factor in (1.0, 2.0, 3.0):
        (gradient,) = torch.autograd.grad(wrapped(x, factor, power=2).sum(), x)
        assert gradient.tolist() == [factor**2] * 2
    assert traces == [2]
    assert wrapped(x, 2.0, power=3).tolist() == [24, 24]
    assert traces == [2, 3]


def test_a_jax_function_is_traced_once_per_shapes_with_and_without_gradients() -> None:
    traces = []
    wrapped = bridge.wrap(lambda x: (traces.append(x.shape), jnp.sin(x))[1], "jax")
    for size in (3, 4, 3, 4):
        wrapped(torch.ones(size))
        wrapped(torch.ones(size, requires_grad=True)).sum().backward()
    assert traces == [(3,), (4,)]


def test_exceptions_come_out_as_they_are() -> None:
    def fail(x: Any) -> Any:
        raise KeyError("mine")

    for library, x in (("torch", jnp.ones(2)), ("jax", torch.ones(2)), ("numpy", torch.ones(2))):
        with pytest.raises(KeyError, match="mine") as caught:
            bridge.wrap(fail, library)(x)
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fail"


def test_gradients_that_would_be_dropped_are_refused() -> None:
    x = torch.ones(3, requires_grad=True)
    cases = [
        (bridge.wrap(lambda x: x, "torch", returns="jax"), (x,)),
        (bridge.wrap(lambda x: x, "jax", returns="jax"), (x,)),
        (bridge.wrap(lambda a, x: a * x, "jax"), (np.ones(3, "float32"), x)),
        (bridge.wrap(lambda a, x: a * x, "torch"), (jnp.ones(3), x)),
        (bridge.wrap(lambda x: x, "numpy"), (x,)),
    ]
    for wrapped, args in cases:
        with pytest.raises(BufferError, match=r"detach\(\)"):
            wrapped(*args)
        with torch.no_grad():
            wrapped(*args)


def test_complex_tensors_have_values_and_no_gradients() -> None:
    wrapped = bridge.wrap(lambda x: jnp.fft.fft(x), "jax")
    x = torch.arange(4.0, requires_grad=True)
    found = wrapped(x)
    assert torch.allclose(found, torch.fft.fft(x), atol=1e-6)
    with pytest.raises(BufferError, match=r"complex.*detach\(\)"):
        found.abs().sum().backward()
    with pytest.raises(BufferError, match=r"complex.*detach\(\)"):
        wrapped(torch.ones(2, dtype=torch.complex64, requires_grad=True))


def test_wide_numbers_name_the_setting() -> None:
    with pytest.raises(BufferError, match="jax_enable_x64"):
        bridge.wrap(lambda x: x, "jax")(torch.arange(3))


def test_tensors_of_other_libraries_come_back_as_their_library() -> None:
    double = bridge.wrap(lambda x: x * 2, "torch")
    assert isinstance(double(at.ones(2)), at.Tensor)
    assert isinstance(double(bridge.caffe2.Tensor(at.ones(2))), bridge.caffe2.Tensor)

    class Unknown:
        def __dlpack__(self, **kwargs: Any) -> Any:
            return np.ones(2).__dlpack__(**kwargs)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(BufferError, match="returns="):
        double(Unknown())
    assert bridge.wrap(lambda x: x * 2, "torch", returns="numpy")(Unknown()).tolist() == [2, 2]


def test_a_caffe2_net_is_a_function_of_jax(fresh_workspace: None) -> None:
    from bridge import caffe2
    from bridge.caffe2 import core, workspace

    net = core.Net("small")
    net.FC(["x", "w", "b"], "h")
    net.Tanh("h", "y")
    random = np.random.default_rng(1)
    w, b, x = (random.random(sizes, "float32") for sizes in ((2, 3), (2,), (4, 3)))
    workspace.FeedBlob("w", w)
    workspace.FeedBlob("b", b)
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])

    def loss(x: Any, w: Any) -> Any:
        return (jnp.tanh(x @ w.T + b) ** 2).sum()

    run = bridge.wrap(module, "torch")
    found = jax.grad(lambda x: (run(x) ** 2).sum())(jnp.asarray(x))
    np.testing.assert_allclose(found, jax.grad(loss)(x, w), rtol=1e-5)
    call = bridge.wrap(lambda w, x: torch.func.functional_call(module, {"w": w}, (x,)), "torch")
    found = jax.jit(jax.grad(lambda w: (call(w, x) ** 2).sum()))(jnp.asarray(w))
    np.testing.assert_allclose(found, jax.grad(loss, 1)(x, w), rtol=1e-5)


@needs_proc
def test_ten_thousand_calls_leave_nothing() -> None:
    forward = bridge.wrap(lambda x: jnp.tanh(x), "jax")
    inside = bridge.wrap(lambda x: torch.tanh(x).sum(), "torch")
    derivative = jax.jit(jax.grad(inside))
    x, y = torch.ones(256, requires_grad=True), jnp.ones(256)

    def call() -> None:
        for _ in range(200):
            x.grad = None
            forward(x).sum().backward()
            derivative(y)
            jax.grad(inside)(y)

    call()
    leaves_nothing(call, "200 calls", nbytes=200 * 1024, blocks=200)
