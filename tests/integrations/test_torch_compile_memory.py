# SPDX-License-Identifier: Apache-2.0
"""Inside ``torch.compile`` as outside: the same values, on the same memory, of the same classes."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2

pytestmark = [
    pytest.mark.skipif(
        tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9),
        reason="traced from torch 2.9 on",
    ),
    # torch 2.9, of a compiled class whose call breaks the graph
    pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace the builtin"),
]


@pytest.fixture(autouse=True)
def _fresh_graphs() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def result_of(function: Callable[[Any], Any]) -> list[Any]:
    """Return what two calls return, and what they leave in their arguments."""
    found: list[Any] = []
    for _ in range(2):
        a = torch.arange(4.0)
        result = function(a)
        found += [result.tolist() if hasattr(result, "tolist") else result, a.tolist()]
    return found


def read_after(a: Any) -> Any:
    n = bridge.to_numpy(a)
    a.add_(1)
    return torch.as_tensor(n.sum())


def convert_and_read(a: Any) -> Any:
    n = bridge.convert(a, "numpy")
    a.mul_(2)
    return torch.as_tensor(n.sum())


def add_in_place(a: Any) -> Any:
    n = bridge.to_numpy(a)
    n += 1
    return a * 2


def set_item(a: Any) -> Any:
    n = bridge.to_numpy(a, copy=False)
    n[0] = 7
    return a * 2


def numpy_out(a: Any) -> Any:
    n = bridge.to_numpy(a)
    np.add(n, 1, out=n)
    return a * 2


def torch_out(a: Any) -> Any:
    n = bridge.to_numpy(a)
    torch.add(a, 1, out=a)
    return torch.as_tensor(n * 2)


def through_both(a: Any) -> Any:
    n = bridge.to_numpy(bridge.from_dlpack(a))
    a.mul_(2)
    return torch.as_tensor(n.sum())


def numpy_method(a: Any) -> Any:
    n = bridge.from_dlpack(a).numpy()
    a.mul_(2)
    return torch.as_tensor(n.sum())


def copied(a: Any) -> Any:
    n = bridge.to_numpy(a, copy=True)
    a.mul_(2)
    return torch.as_tensor(n.sum())


def and_back(a: Any) -> Any:
    t = bridge.to_torch(bridge.to_numpy(a))
    t.add_(1)
    return a + 0


def array_as_result(a: Any) -> Any:
    n = bridge.to_numpy(a)
    a.mul_(2)
    return n


IN_ONE_GRAPH = [
    *(read_after, convert_and_read, add_in_place, set_item, numpy_out, torch_out, through_both),
    *(numpy_method, copied, and_back, array_as_result),
]


@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", IN_ONE_GRAPH, ids=lambda f: f.__name__)
def test_arrays_and_tensors_are_one_memory(
    function: Callable[[Any], Any], backend: str, fullgraph: bool
) -> None:
    expected = result_of(function)
    assert result_of(torch.compile(function, backend=backend, fullgraph=fullgraph)) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch itself
@pytest.mark.parametrize("function", [read_after, add_in_place])
def test_the_default_backend_gives_the_same_values(function: Callable[[Any], Any]) -> None:
    assert result_of(torch.compile(function)) == result_of(function)


def test_an_array_of_a_helper_outside_of_the_graph_sees_the_memory() -> None:
    @torch.compiler.disable
    def array_of(a: Any) -> Any:
        return bridge.to_numpy(bridge.from_dlpack(a))

    def function(a: Any) -> Any:
        n = array_of(a)
        a.add_(1)
        return torch.as_tensor(n.sum())

    assert result_of(torch.compile(function, backend="aot_eager")) == result_of(function)


@pytest.mark.parametrize("fullgraph", [True, False])
def test_refusals_are_the_same(fullgraph: bool) -> None:
    def function(t: Any) -> Any:
        try:
            return torch.as_tensor(bridge.to_numpy(t))
        except BufferError:
            return t.detach() + 1

    t = torch.ones(2, requires_grad=True)
    found = torch.compile(function, backend="aot_eager", fullgraph=fullgraph)(t)
    assert found.tolist() == [2.0, 2.0]


def with_audit(x: Any, a: Any) -> Any:
    with bridge.audit() as log:
        bridge.from_dlpack(a, copy=True)
    return log.copied_bytes


def with_no_copy(x: Any, a: Any) -> Any:
    with bridge.no_copy():
        try:
            bridge.from_dlpack(a, copy=True)
        except BufferError:
            return 1
    return 2


def write_caffe2(x: Any, a: Any) -> int:
    caffe2.Tensor(x).mutable_data("float32")[0] = 5
    return 1


def write_at(x: Any, a: Any) -> int:
    at.Tensor(x).add_(1)
    return 1


def write_copy(x: Any, a: Any) -> int:
    copy.deepcopy(x).add_(1)
    return 1


def write_memory(x: Any, a: Any) -> int:
    memoryview(x)[1] = 9
    return 1


QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sizes()": lambda x, a: sum(x.sizes()) + len(x.sizes()),
    "strides()": lambda x, a: x.strides()[0],
    "readonly": lambda x, a: 1 if x.readonly else 2,
    "itemsize()": lambda x, a: x.itemsize(),
    "nbytes()": lambda x, a: x.nbytes(),
    "device()": lambda x, a: 1 if x.device() == "cpu" else 2,
    "device": lambda x, a: 1 if x.device == "cpu" else 2,
    "dtype()": lambda x, a: 1 if x.dtype() == "float32" else 2,
    "dtype": lambda x, a: 1 if x.dtype == "float32" else 2,
    "bytes": lambda x, a: len(bytes(x)),
    "memoryview": lambda x, a: memoryview(x).nbytes,
    "caffe2.Tensor": lambda x, a: caffe2.Tensor(x).numel(),
    "repr": lambda x, a: len(repr(x)),
    "isinstance": lambda x, a: 1 if isinstance(x, at.Tensor) else 2,
    "isinstance of several": lambda x, a: 1 if isinstance(x, (int, at.Tensor)) else 2,
    "isinstance, torch": lambda x, a: 1 if isinstance(x, torch.Tensor) else 2,
    "isinstance of a result": lambda x, a: 1 if isinstance(x.sin(), at.Tensor) else 2,
    "type": lambda x, a: 1 if type(x) is at.Tensor else 2,
    "is_same": lambda x, a: 1 if x.is_same(x) else 2,
    "storage": lambda x, a: x.storage().nbytes(),
    "shares_memory": lambda x, a: 1 if bridge.shares_memory(x, a) else 2,
    "explain": lambda x, a: bridge.explain(x).nbytes,
    "audit": with_audit,
    "no_copy": with_no_copy,
    "caffe2.Tensor, written": write_caffe2,
    "at.Tensor, written": write_at,
    "deepcopy, written": write_copy,
    "memoryview, written": write_memory,
    "slice": lambda x, a: 1 if x.slice(0, 1, 3).zero_() is not None else 2,
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_tensor_in_a_graph_is_an_at_tensor(name: str, backend: str) -> None:
    def function(a: Any) -> Any:
        x = bridge.from_dlpack(a)
        return a + QUESTIONS[name](x, a)

    assert result_of(torch.compile(function, backend=backend)) == result_of(function)


@pytest.mark.parametrize(
    "name", ["sizes()", "strides()", "readonly", "isinstance", "isinstance, torch", "type", "slice"]
)
def test_questions_about_a_tensor_stay_in_one_graph(name: str) -> None:
    def function(a: Any) -> Any:
        return a + QUESTIONS[name](bridge.from_dlpack(a), a)

    found = torch.compile(function, backend="aot_eager", fullgraph=True)
    assert result_of(found) == result_of(function)


def test_results_leave_as_at_tensors() -> None:
    def function(t: Any) -> Any:
        return bridge.from_dlpack(t).mul_(2)

    t = torch.ones(2)
    found = torch.compile(function, backend="aot_eager")(t)
    assert type(found) is at.Tensor and found.tolist() == [2.0, 2.0]
    found.add_(1)
    assert t.tolist() == [3.0, 3.0]


def test_a_graph_that_was_compiled_before_is_audited() -> None:
    function = torch.compile(
        lambda t: bridge.to_torch(bridge.from_dlpack(t, copy=True)) + 1, backend="eager"
    )
    t = torch.ones(2)
    assert function(t).tolist() == [2.0, 2.0]
    with bridge.audit() as log:
        assert function(t).tolist() == [2.0, 2.0]
    assert log.copied_bytes == 8
    with bridge.no_copy(), pytest.raises(BufferError, match="no_copy"):
        function(t)
    assert function(t).tolist() == [2.0, 2.0]


def test_a_compiled_function_takes_an_at_tensor() -> None:
    function = torch.compile(lambda x: (x.device(), x.dtype(), x.sizes(), x + 1), backend="eager")
    device, dtype, sizes, result = function(at.ones(2))
    assert (device, dtype, list(sizes)) == ("cpu", "float32", [2])
    assert type(result) is at.Tensor and result.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("run", [operator.iadd, operator.ifloordiv, operator.ipow])
def test_an_operator_in_place_writes_an_at_tensor_from_outside(run) -> None:
    def function(x):
        n = bridge.to_numpy(x)
        y = run(x, 2)
        return y is x, n.tolist()

    x, expected = at.arange(4.0), at.arange(4.0)
    assert torch.compile(function, backend="eager")(x) == function(expected)
    assert x.tolist() == expected.tolist()


def write_by_another(a: Any) -> Any:
    x = bridge.from_dlpack(a)
    x.copy_(x.flip(0))
    return x.tolist(), isinstance(x, at.Tensor)


def write_items(a: Any) -> Any:
    x = bridge.from_dlpack(a)
    x[torch.tensor([0, 2])] = torch.tensor([5.0, 6.0])
    x[1] = a[3]
    return x


def write_each(a: Any) -> Any:
    rows = list(bridge.from_dlpack(a.view(2, 2)))
    for i, row in enumerate(rows):
        row.add_(i)
    first, second = bridge.from_dlpack(a.view(2, 2))
    first.mul_(second)
    return rows[0].tolist(), isinstance(second, at.Tensor), float(first[0])


def wrap_inside(a: Any) -> Any:
    return bridge.wrap(lambda x: x * 2, "numpy")(bridge.from_dlpack(a))


@pytest.mark.parametrize("function", [write_by_another, write_items, write_each, wrap_inside])
def test_a_tensor_keeps_its_class_when_it_is_written_and_iterated(
    function: Callable[[Any], Any],
) -> None:
    found = torch.compile(function, backend="eager")(torch.arange(4.0))
    assert type(found) is type(function(torch.arange(4.0)))
    assert result_of(torch.compile(function, backend="eager")) == result_of(function)


@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_gradient_is_refused_in_a_graph_too(fullgraph: bool) -> None:
    def function(a: Any) -> Any:
        return bridge.from_dlpack(a).requires_grad_().sum()

    compiled = torch.compile(function, backend="eager", fullgraph=fullgraph)
    with pytest.raises(RuntimeError, match="graph_break" if fullgraph else "requires_grad"):
        compiled(torch.arange(4.0))
