# SPDX-License-Identifier: Apache-2.0
"""Methods and operators that torch runs on the same memory."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10

from .comparing import ERRORS, expect_like_torch, expect_result, pair


def expect_view(ours: at.Tensor, theirs: torch.Tensor) -> None:
    """Check that both show the same elements of the same memory."""
    expect_result(ours, theirs)
    assert ours.strides() == theirs.stride()
    assert ours.data_ptr() == theirs.data_ptr()


METHODS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x.add(x),
    "add scalar": lambda x: x.add(2),
    "add alpha": lambda x: x.add(x, alpha=3),
    "mul": lambda x: x.mul(x),
    "sum": lambda x: x.sum(),
    "sum dim": lambda x: x.sum(dim=1, keepdim=True),
    "sum dtype": lambda x: x.sum(0),
    "mean": lambda x: x.mean(-1),
    "argmax": lambda x: x.argmax(1),
    "matmul": lambda x: x.matmul(x.t()),
    "exp": lambda x: x.exp(),
    "clamp": lambda x: x.clamp(min=1, max=3),
    "cumsum": lambda x: x.cumsum(0),
    "repeat": lambda x: x.repeat(2, 1),
    "gt": lambda x: x.gt(2),
    "masked_select": lambda x: x.masked_select(x > 2),
    "index_select": lambda x: x.index_select(1, x[0].long()),
    "softmax": lambda x: x.softmax(-1),
    "norm": lambda x: x.norm(),
    "roll": lambda x: x.roll(1, 0),
    "where": lambda x: x.where(x > 2, x.neg()),
    "float": lambda x: x.double(),
    "type": lambda x: x.type(torch.int16),
    "new_zeros": lambda x: x.new_zeros(2, 3),
    "of a view": lambda x: x.t().add(1),
    "of a part": lambda x: x[:, 1:].mul(2),
}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_methods_agree_with_torch(method: Callable[[Any], Any]) -> None:
    ours, theirs = pair((2, 3))
    expect_result(method(ours), method(theirs))
    assert torch.equal(theirs, pair((2, 3))[1])


BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


@pytest.mark.parametrize("name", BINARY + COMPARISONS)
def test_binary_operators_agree_with_torch(name: str) -> None:
    run = getattr(operator, name)
    ours, theirs = pair((2, 3))
    ours, theirs = ours + 1, theirs + 1
    expect_result(run(ours, ours), run(theirs, theirs))
    expect_result(run(ours, 2), run(theirs, 2))
    expect_result(run(2, ours), run(2, theirs))
    expect_result(run(ours, 2.5), run(theirs, 2.5))
    expect_result(run(ours, theirs), run(theirs, theirs))
    expect_result(run(theirs, ours), run(theirs, theirs))
    expect_result(run(ours, ours[0]), run(theirs, theirs[0]))


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_operators_of_integers_agree_with_torch(name: str) -> None:
    run = getattr(operator, name)
    ours, theirs = pair((2, 3), torch.int32)
    expect_result(run(ours, ours), run(theirs, theirs))
    expect_result(run(ours, 3), run(theirs, 3))


def test_unary_operators_agree_with_torch() -> None:
    ours, theirs = pair((2, 3))
    expect_result(-ours, -theirs)
    expect_result(abs(-ours), abs(-theirs))
    expect_result(+ours, theirs)
    expect_result(~(ours > 2), ~(theirs > 2))
    expect_result(1 - ours, 1 - theirs)
    expect_result(2**ours, 2**theirs)
    expect_result(1 / (ours + 1), 1 / (theirs + 1))


def test_matrix_product_agrees_with_torch() -> None:
    ours, theirs = pair((2, 3))
    expect_result(ours @ ours.t(), theirs @ theirs.t())
    expect_result(ours @ theirs.t(), theirs @ theirs.t())
    expect_result(theirs @ ours.t(), theirs @ theirs.t())
    with pytest.raises(ERRORS):
        ours @ ours


@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv"])
def test_in_place_operators_write_the_same_memory(name: str) -> None:
    run = getattr(operator, name)
    ours, theirs = pair((2, 3))
    expected = run(theirs.clone(), 2)
    result = run(ours, 2)
    assert result is ours
    assert torch.equal(theirs, expected)


def test_one_element_converts_to_a_number_and_several_are_refused() -> None:
    assert bool(at.tensor(1.0)) is True
    assert bool(at.tensor([0])) is False
    assert float(at.tensor([2.5])) == 2.5
    assert int(at.tensor(7)) == 7
    assert [10, 20][at.tensor(1)] == 20
    for convert in [bool, float, int]:
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            convert(at.zeros((2,)))


def test_one_element_is_formatted_as_its_number() -> None:
    assert f"{at.tensor(1.5):8.3f}" == "   1.500"
    assert f"{at.tensor([1.5])}" == repr(at.tensor([1.5]))
    with pytest.raises(ValueError):
        f"{at.tensor([1.5, 2.5]):.3f}"


def test_a_power_to_a_modulus_is_refused() -> None:
    with pytest.raises(TypeError, match="pow"):
        pow(at.tensor([3]), 2, 5)


def test_a_tensor_can_be_a_key() -> None:
    tensor = at.zeros((2,))
    assert {tensor: "found"}[tensor] == "found"


IN_PLACE: dict[str, Callable[[Any], Any]] = {
    "add_": lambda x: x.add_(1),
    "mul_": lambda x: x.mul_(x),
    "exp_": lambda x: x.exp_(),
    "clamp_": lambda x: x.clamp_(max=2),
    "masked_fill_": lambda x: x.masked_fill_(x > 2, -1.0),
    "sub_ keyword": lambda x: x.sub_(x, alpha=2),
    "neg_": lambda x: x.neg_(),
    "apply_": lambda x: x.apply_(lambda value: value * 2 + 1),
    "index_add_": lambda x: x.index_add_(0, torch.tensor([1]), torch.ones(1, 3)),
}


@pytest.mark.parametrize("method", IN_PLACE.values(), ids=IN_PLACE)
def test_in_place_methods_write_the_same_memory(method: Callable[[Any], Any]) -> None:
    ours, theirs = pair((2, 3))
    expected = method(theirs.clone())
    assert method(ours) is ours
    assert torch.equal(theirs, expected)
    assert ours.data_ptr() == theirs.data_ptr()


def test_in_place_methods_write_through_views() -> None:
    ours, theirs = pair((4, 5))
    expected = theirs.clone()
    expected[1:, ::2].t().add_(10)
    ours[1:, ::2].t().add_(10)
    assert torch.equal(theirs, expected)


@pytest.mark.parametrize(
    ("method", "shape"),
    [
        (lambda x: x.unsqueeze_(0), (1, 2, 1, 3)),
        (lambda x: x.squeeze_(), (2, 3)),
        (lambda x: x.transpose_(0, 2), (3, 1, 2)),
        (lambda x: x.swapaxes_(1, 2), (2, 3, 1)),
        (lambda x: x.as_strided_((3, 2), (1, 3)), (3, 2)),
    ],
    ids=["unsqueeze_", "squeeze_", "transpose_", "swapaxes_", "as_strided_"],
)
def test_in_place_methods_change_the_metadata_of_both_wrappers(
    method: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    ours, theirs = pair((2, 1, 3))
    wrapped = at.Tensor(ours)
    assert method(ours) is ours
    method(theirs)
    assert ours.shape == wrapped.shape == shape
    expect_like_torch(ours, theirs)


def test_results_that_are_views_share_memory() -> None:
    ours, theirs = pair((4, 6))
    expect_view(ours.movedim(0, 1), theirs.movedim(0, 1))
    expect_view(at.swapaxes(ours, 0, 1), theirs.swapaxes(0, 1))
    for mine, other in zip(ours.chunk(2), theirs.chunk(2), strict=True):
        expect_view(mine, other)
    ours.chunk(2)[1].fill_(0)
    assert theirs[2:].sum() == 0
    assert ours[:2].sum().item() == theirs[:2].sum().item() != 0


def test_functions_of_several_results_return_sequences_of_tensors() -> None:
    ours, theirs = pair((4, 6))
    values, indices = ours.topk(2)
    expect_result(values, theirs.topk(2)[0])
    expect_result(indices, theirs.topk(2)[1])
    assert [part.shape for part in ours.split(3)] == [(3, 6), (1, 6)]
    assert [part.shape for part in at.split(ours, [1, 3])] == [(1, 6), (3, 6)]
    assert all(isinstance(part, at.Tensor) for part in ours.unbind())
    assert len(ours.unbind(1)) == 6
    maximum = ours.max(dim=1)
    expect_result(maximum[0], theirs.max(dim=1)[0])
    expect_result(maximum.values, theirs.max(dim=1).values)
    expect_result(maximum.indices, theirs.max(dim=1).indices)
    assert isinstance(ours.nonzero(as_tuple=True), tuple)
    assert all(isinstance(part, at.Tensor) for part in at.meshgrid(ours[0], ours[1], indexing="ij"))


def test_numbers_and_types_are_returned_as_torch_returns_them() -> None:
    ours, theirs = pair((4, 6))
    assert at.allclose(ours, theirs) is True
    assert at.numel(ours) == 24
    assert at.is_floating_point(ours) is True
    assert ours.is_floating_point() is True
    assert ours.element_size() == 4
    assert at.result_type(ours, 1) in (torch.float32, c10.float32)


def test_results_do_not_depend_on_their_arguments() -> None:
    result = at.ones((1000,)).add(at.ones((1000,)))
    garbage = [at.zeros((1000,)) for _ in range(20)]
    assert len(garbage) == 20
    assert set(result.tolist()) == {2.0}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "bool", "uint8"])
def test_types_keep_their_type(dtype: str) -> None:
    ours, theirs = at.ones((2, 2), dtype), torch.ones(2, 2, dtype=getattr(torch, dtype))
    result = ours.mul(ours)
    assert result.dtype() == getattr(c10, dtype)
    assert result.tolist() == theirs.mul(theirs).tolist()


def test_errors_of_torch_reach_the_caller() -> None:
    ours, _ = pair((2, 3))
    for broken in [
        lambda: ours.add(at.zeros((4, 5))),
        lambda: at.cat([ours, at.zeros((5,))]),
        lambda: ours.softmax(7),
        lambda: ours.add(),
        lambda: at.softmax(ours, -1, no_such_keyword=1),
        lambda: ours + "text",
        lambda: ours + object(),
    ]:
        with pytest.raises(ERRORS):
            broken()


def test_unknown_names_are_an_attribute_error() -> None:
    tensor = at.zeros((2,))
    for name in ["no_such_method", "_no_such", "__no_such__", "no_such_"]:
        with pytest.raises(AttributeError, match=name):
            getattr(tensor, name)
        with pytest.raises(AttributeError, match=name):
            getattr(at, name)
        assert not hasattr(tensor, name)
        assert not hasattr(at, name)
    with pytest.raises(AttributeError):
        tensor.no_such_attribute = 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: at.zeros(3, 3, dtype="complex64"),
        lambda: at.zeros(12, dtype="complex64")[3:].view(3, 3),
        lambda: bridge.from_dlpack(torch.zeros(3, 3, dtype=torch.complex64)),
        lambda: bridge.from_dlpack(np.zeros((3, 3), np.complex64)),
    ],
)
def test_an_out_argument_that_torch_marks_as_conjugated_has_its_values(
    make: Callable[[], at.Tensor],
) -> None:
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(3, 3, dtype=torch.complex64, generator=generator) for _ in range(2))
    factors, pivots = torch.linalg.lu_factor(a)
    expected = torch.linalg.lu_solve(factors, pivots, b, left=False)
    x = make()
    numpy = x.numpy()
    assert torch.linalg.lu_solve(factors, pivots, b, left=False, out=x) is x
    assert np.allclose(numpy, expected.resolve_conj().numpy(), atol=1e-5)
    assert torch.allclose(x.to_torch(), expected)
    x.mul_(2)
    assert np.allclose(numpy, 2 * expected.resolve_conj().numpy(), atol=1e-5)


def test_at_has_no_names_that_torch_imports_from_typing() -> None:
    assert at.add is not None
    with pytest.raises(AttributeError, match="no function 'Optional'"):
        _ = at.Optional


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.filterwarnings("ignore:.*quantiz")
@pytest.mark.parametrize("readonly", [False, True], ids=["writable", "read-only"])
def test_what_is_not_one_block_of_memory_stays_torchs(readonly: bool) -> None:
    array = np.eye(3, dtype=np.float32)
    array.flags.writeable = not readonly
    x = bridge.from_dlpack(array)
    for made in (
        x.to_sparse(),
        torch.sparse_coo_tensor(torch.tensor([[0, 1, 2]]), x.diag()),
        torch.sparse_csr_tensor(torch.arange(4), torch.arange(3), x[0]),
        torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    ):
        assert type(made) is torch.Tensor
        if made.layout == torch.sparse_csr:
            made.values().add_(1)
        assert (array == np.eye(3)).all() or not readonly


def test_the_old_name_of_division_works_reversed() -> None:
    assert at.tensor([2.0, 4.0]).__rdiv__(8).tolist() == [4, 2]
