# SPDX-License-Identifier: Apache-2.0
"""`at.<function>`, `out=`, and torch's own functions given our tensors."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

import bridge
from bridge import at
from bridge.at.tensor import torch_runner

from .comparing import expect_result, pair

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": lambda lib, x: lib.softmax(x, -1),
    "softmax dim": lambda lib, x: lib.softmax(x, dim=0),
    "cat": lambda lib, x: lib.cat([x, x]),
    "cat dim": lambda lib, x: lib.cat((x, x), dim=1),
    "stack": lambda lib, x: lib.stack([x, x], 1),
    "where": lambda lib, x: lib.where(x > 2, x, -x),
    "einsum": lambda lib, x: lib.einsum("ij,kj->ik", x, x),
    "relu": lambda lib, x: lib.relu(x - 2),
    "sum": lambda lib, x: lib.sum(x, dim=0, dtype=torch.float64),
    "add": lambda lib, x: lib.add(x, x, alpha=2),
    "mm": lambda lib, x: lib.mm(x, x.t()),
    "tril": lambda lib, x: lib.tril(x),
    "clamp": lambda lib, x: lib.clamp(x, min=1.0),
    "std": lambda lib, x: lib.std(x, dim=1, correction=0),
    "linspace": lambda lib, x: lib.linspace(0, 1, 5),
}


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "add_": lambda x, d: x.add_(d),
    "+=": lambda x, d: operator.iadd(x, d),
    "view": lambda x, d: x[1:].mul_(d[1:]),
    "addcmul_": lambda x, d: x.addcmul_(x, d),
    "in a list": lambda x, d: x.index_put_([torch.tensor([0, 1, 2])], d),
    "copy_": lambda x, d: x.copy_(d),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("make", [at.ones, lambda n: bridge.from_dlpack(torch.ones(n))])
def test_what_requires_grad_is_written_into_a_tensor_only_without_its_gradient(
    make: Callable[[int], at.Tensor], write: Callable[[Any, Any], Any]
) -> None:
    x = make(3)
    weight = torch.full((3,), 2.0, requires_grad=True)
    with pytest.raises(BufferError, match=r"requires grad.*detach\(\)"):
        write(x, weight)
    assert x.tolist() == [1, 1, 1]
    assert not x.to_torch().requires_grad
    write(x, weight.detach())
    assert x.tolist() != [1, 1, 1]


def test_without_grad_mode_a_weight_is_written_into_a_tensor() -> None:
    x, weight = at.ones(3), torch.ones(3, requires_grad=True)
    with torch.no_grad():
        assert x.lerp_(weight * 3, 0.5).tolist() == [2, 2, 2]
    assert at.zeros(3, "bool").logical_or_(weight).tolist() == [True] * 3
    assert x.add(weight).requires_grad


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_of_at_agree_with_torch(function: Callable[[Any, Any], Any]) -> None:
    ours, theirs = pair((2, 3))
    expect_result(function(at, ours), function(torch, theirs))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_functions_of_at_take_torch_tensors(function: Callable[[Any, Any], Any]) -> None:
    _, theirs = pair((2, 3))
    expect_result(function(at, theirs), function(torch, theirs))


TORCH_FUNCTIONS = {name: run for name, run in FUNCTIONS.items() if name != "linspace"}


@pytest.mark.parametrize("function", TORCH_FUNCTIONS.values(), ids=TORCH_FUNCTIONS)
def test_functions_of_torch_take_our_tensors(function: Callable[[Any, Any], Any]) -> None:
    ours, theirs = pair((2, 3))
    expect_result(function(torch, ours), function(torch, theirs))


def test_functions_of_torch_take_both() -> None:
    ours, theirs = pair((2, 3))
    expect_result(torch.add(ours, theirs), theirs + theirs)
    expect_result(torch.add(theirs, ours), theirs + theirs)
    expect_result(torch.add(theirs, other=ours, alpha=2), theirs * 3)
    expect_result(torch.cat([theirs, ours]), torch.cat([theirs, theirs]))
    expect_result(torch.where(ours > 2, theirs, ours), theirs)
    expect_result(torch.nn.functional.relu(ours - 2), torch.relu(theirs - 2))
    expect_result(torch.Tensor.add(theirs, ours), theirs + theirs)
    expect_result(theirs.add(ours), theirs + theirs)
    expect_result(at.add(ours, theirs), theirs + theirs)
    assert torch.allclose(ours, theirs) is True
    assert torch.equal(ours, theirs) is True


class Traced:
    """Not a tensor; it answers for itself what torch's functions do to it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, [type(one).__name__ for one in args]


def test_other_classes_with_torch_function_answer_for_themselves() -> None:
    ours, _ = pair((2, 3))
    assert torch.add(Traced(), ours) == ("add", ["Traced", "Tensor"])
    assert torch.add(ours, Traced())[0] == "add"
    assert (ours + Traced())[0] == "add"
    assert (Traced() // ours)[0] == "floor_divide"


def test_out_is_written_and_returned() -> None:
    ours, theirs = pair((2, 3))
    target, theirs_target = pair((2, 3))
    result = at.add(ours, 10, out=target)
    assert result is target
    assert torch.equal(theirs_target, theirs + 10)
    result = torch.mul(ours, 2, out=target)
    assert isinstance(result, at.Tensor)
    assert result.is_same(target)
    assert torch.equal(theirs_target, theirs * 2)
    values, indices = at.zeros((2,)), at.zeros((2,), "int64")
    at.max(ours, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([2.0, 5.0], [2, 2])


def test_out_that_must_grow_is_refused() -> None:
    ours, _ = pair((2, 3))
    target = at.empty((0,))
    with pytest.raises(RuntimeError, match=r"add .* the sizes are \(0,\).* Pass a tensor"):
        at.add(ours, 1, out=target)
    assert target.shape == (0,)
    values, indices = at.empty((2,)), at.empty((1,), "int64")
    with pytest.raises(RuntimeError, match=r"max .* the sizes are \(2,\), \(1,\)"):
        at.max(ours, 1, out=(values, indices))
    assert (values.shape, indices.shape) == ((2,), (1,))


def test_torch_tensors_that_are_written_come_back_themselves() -> None:
    ours, theirs = pair((2, 3))
    target = torch.empty(2, 3)
    assert torch.add(ours, 1, out=target) is target
    assert at.add(ours, 1, out=target) is target
    assert torch.equal(target, theirs + 1)
    assert target.add_(ours) is target
    before = target
    target += ours
    assert target is before
    assert torch.equal(target, theirs * 3 + 1)
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    both = torch.max(ours, 1, out=(values, indices))
    assert both[0] is values
    assert both[1] is indices


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_out_that_is_too_small_stays_as_it_is(device: str) -> None:
    """Torch would give it other memory, in which the tensor's elements are not."""
    ours = at.ones(2, 3, device=device)
    whole = at.zeros(2, 3, device=device)
    for target in (at.zeros(3, device=device), whole[1], at.empty(0, device=device)):
        target.fill_(7)
        with pytest.raises(RuntimeError, match="not resizable"):
            at.mul(ours, 2, out=target)
        with pytest.raises(RuntimeError, match="not resizable"):
            torch.mul(ours, 2, out=target)
        with pytest.raises(RuntimeError, match="not resizable"):
            torch.resize_as_(target, ours)
        assert target.tolist() == [7] * target.numel()
    assert whole.tolist() == [[0] * 3, [7] * 3]


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
def test_out_grows_into_its_storage_as_a_view_of_torch_does() -> None:
    whole, theirs = at.zeros(2, 3), torch.zeros(2, 3)
    target, expected = whole[0], theirs[0]
    at.mul(at.ones(2, 3), 2, out=target)
    torch.mul(torch.ones(2, 3), 2, out=expected)
    assert target.tolist() == expected.tolist()
    assert whole.tolist() == theirs.tolist()


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
@pytest.mark.parametrize("sizes", [(4,), (2, 2, 1), (3, 2), (0,), (5, 2)])
@pytest.mark.parametrize("function", [at.mul, torch.mul])
def test_out_has_the_sizes_that_torch_gives_it(function, sizes, device: str) -> None:
    """Also where torch gave it other memory: the tensor came from torch, which can."""
    given = at.ones(sizes, device=device)
    target = bridge.from_dlpack(torch.zeros(3, 2, 1, device=device))
    assert function(given, 2, out=target) is target
    assert (target.shape, target.tolist()) == (sizes, (given * 2).tolist())
    assert tuple(target.to_torch().shape) == sizes
    if target.numel() <= 6:
        own = at.zeros(3, 2, 1, device=device)
        whole = own.alias()
        assert function(given, 2, out=own) is own
        assert (own.shape, own.tolist()) == (sizes, (given * 2).tolist())
        assert whole.flatten().tolist() == [2] * own.numel() + [0] * (6 - own.numel())


class Extremes(NamedTuple):
    """What a function of Python returns."""

    least: Any
    greatest: Any


def test_a_named_tuple_of_python_keeps_its_class() -> None:
    def extremes(x: torch.Tensor) -> Extremes:
        return Extremes(x.min(), x.max())

    found = torch_runner.run("extremes", extremes, (at.arange(3.0),), {})
    assert type(found) is Extremes
    assert isinstance(found.least, at.Tensor)
    assert (found.least.item(), found.greatest.item()) == (0, 2)
