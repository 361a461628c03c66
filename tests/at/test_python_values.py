# SPDX-License-Identifier: Apache-2.0
"""Methods that read, copy, write or move data, and read-only tensors that refuse them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10
from tests.helpers.ids import shown

from .comparing import ERRORS, pair

needs_no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is present")

DTYPES = ["bool", "uint8", "int16", "int64", "float16", "float32", "float64", "bfloat16"]


def test_clone_copies_the_elements_of_any_view() -> None:
    ours, theirs = pair((2, 3))
    for source, expected in [(ours, theirs), (ours.t(), theirs.t()), (ours[:, 1], theirs[:, 1])]:
        copied = source.clone()
        assert isinstance(copied, at.Tensor)
        assert copied.tolist() == expected.tolist()
        assert copied.data_ptr() != source.data_ptr()
        copied.fill_(9)
    assert ours.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


def test_contiguous_copies_only_tensors_that_are_not_row_major() -> None:
    ours, theirs = pair((2, 3))
    assert ours.contiguous().data_ptr() == ours.data_ptr()
    assert ours[1:].contiguous().data_ptr() == ours.data_ptr() + 12
    copied = ours.t().contiguous()
    assert copied.is_contiguous()
    assert copied.strides() == (2, 1)
    assert copied.data_ptr() != ours.data_ptr()
    assert copied.tolist() == theirs.t().tolist()


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_copy_converts_types_as_torch_does(source: str, target: str) -> None:
    values = torch.tensor([0.0, 1.0, 2.0, 100.0]).to(getattr(torch, source))
    ours, theirs = at.zeros((4,), target), torch.zeros(4, dtype=getattr(torch, target))
    theirs.copy_(values)
    assert ours.copy_(bridge.from_dlpack(values)) is ours
    assert torch.equal(ours.to_torch(), theirs)
    assert ours.dtype() == getattr(c10, target)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3)], ids=str)
def test_copy_broadcasts_its_source(shape: tuple[int, ...]) -> None:
    source = np.random.default_rng(0).random(shape)
    for value in [bridge.asarray(source), source, torch.from_numpy(np.asarray(source))]:
        ours, theirs = pair((2, 3), torch.float64)
        ours.copy_(value)
        np.testing.assert_array_equal(theirs.numpy(), np.broadcast_to(source, (2, 3)))


@pytest.mark.parametrize("source", [np.zeros((2, 2)), np.zeros(2), np.zeros((3, 2, 3)), "a", None])
def test_copy_refuses_a_source_that_does_not_fit_and_changes_nothing(source: Any) -> None:
    ours, theirs = pair((2, 3))
    before = theirs.clone()
    with pytest.raises((*ERRORS, BufferError)):
        ours.copy_(source)
    assert torch.equal(theirs, before)


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (lambda x: x[1:], lambda x: x[:-1]),
        (lambda x: x[:-1], lambda x: x[1:]),
        (lambda x: x, lambda x: x[::-1]),
        (lambda x: x[::-1], lambda x: x),
        (lambda x: x, lambda x: x),
    ],
    ids=["up", "down", "reversed", "to reversed", "itself"],
)
@pytest.mark.parametrize("size", [6, 5001])
def test_copy_over_itself_is_right_or_refused(target: Any, source: Any, size: int) -> None:
    array = np.arange(size, dtype=np.float32)
    ours, before, expected = bridge.from_dlpack(array), array.copy(), array.copy()
    target(expected)[...] = source(expected).copy()
    try:
        target(ours).copy_(source(ours))
    except RuntimeError:
        expected = before
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("dtype", [*DTYPES, "complex64", "uint32"])
def test_fill_and_zero_write_every_type_and_return_the_tensor(dtype: str) -> None:
    tensor = at.zeros((2, 3), dtype)
    assert tensor.fill_(1) is tensor
    np.testing.assert_array_equal(tensor.numpy(), np.ones((2, 3), tensor.dtype().numpy))
    assert tensor[:, 1].zero_().tolist() == at.zeros((2,), dtype).tolist()
    assert tensor.zero_() is tensor
    np.testing.assert_array_equal(tensor.numpy(), np.zeros((2, 3), tensor.dtype().numpy))


def test_fill_keeps_the_value_exact_in_a_type_that_holds_it() -> None:
    assert at.zeros((1,), "int64").fill_(2**53 + 1).item() == 2**53 + 1
    assert at.zeros((1,), "complex64").fill_(1 + 2j).item() == 1 + 2j
    assert at.zeros((1,), "float64").fill_(float("inf")).item() == float("inf")
    assert np.isnan(at.zeros((1,), "float32").fill_(float("nan")).item())
    assert at.zeros((0, 3)).fill_(1).tolist() == []


@pytest.mark.parametrize("value", ["text", object(), [1, 2], None, 2**70, 1j], ids=shown)
def test_fill_refuses_a_value_that_is_not_a_number(value: Any) -> None:
    tensor = at.full((2,), 3.0)
    with pytest.raises(ERRORS):
        tensor.fill_(value)
    assert tensor.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("name", ["float32", "float64", "int16", "int32", "uint64", "complex64"])
def test_item_reads_a_number_at_an_odd_address(name: str) -> None:
    """Without the sanitizers it is right on most machines, whatever reads it."""
    number = np.ones(1, name)
    shifted = bridge.from_dlpack(bytearray(b"x" + number.tobytes()))[1:]
    odd = at.from_blob(shifted, (number.nbytes,), dtype="uint8").view(name)
    assert odd.data_ptr() % 2 == 1
    assert odd.item() == 1


@pytest.mark.parametrize(
    ("dtype", "value", "kind"),
    [
        ("float32", 1.5, float),
        ("float64", 1.5, float),
        ("bfloat16", 1.5, float),
        ("float16", 1.5, float),
        ("int8", -3, int),
        ("uint64", 2**64 - 1, int),
        ("bool", True, bool),
        ("complex64", 1 + 2j, complex),
        ("float8_e4m3fn", 1.5, float),
    ],
)
def test_item_and_tolist_give_python_values(dtype: str, value: Any, kind: type) -> None:
    for shape in [(), (1,), (1, 1, 1)]:
        tensor = at.full(shape, value, dtype)
        assert type(tensor.item()) is kind
        assert tensor.item() == value
    assert at.full((), value, dtype).tolist() == value
    listed = at.full((2, 1), value, dtype).tolist()
    assert listed == [[value], [value]]
    assert type(listed[0][0]) is kind


@pytest.mark.parametrize("shape", [(0,), (2,), (2, 3), (1, 0)], ids=str)
def test_item_refuses_tensors_of_several_elements_or_none(shape: tuple[int, ...]) -> None:
    with pytest.raises((RuntimeError, ValueError)):
        at.zeros(shape).item()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (1, 2, 1)], ids=str)
def test_tolist_gives_the_nested_lists_of_torch(shape: tuple[int, ...]) -> None:
    ours, theirs = pair(shape)
    assert ours.tolist() == theirs.tolist()


def test_to_returns_the_tensor_itself_or_a_converted_copy() -> None:
    ours, _ = pair((2, 3))
    for same in ["cpu", c10.CPU, "float32", torch.float32, c10.float32, torch.device("cpu")]:
        assert ours.to(same).data_ptr() == ours.data_ptr()
    for other in ["float64", np.float64, torch.float64, float, c10.float64]:
        converted = ours.to(other)
        assert converted.dtype() == c10.float64
        assert converted.tolist() == ours.tolist()
        assert converted.data_ptr() != ours.data_ptr()
    assert ours.to("int8").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert ours.cpu().data_ptr() == ours.data_ptr()
    for wrong in ["no_such_thing", object(), 3.5]:
        with pytest.raises(ERRORS):
            ours.to(wrong)


def test_to_takes_the_arguments_of_aten() -> None:
    ours, theirs = pair((2, 3))
    half = torch.zeros(1, dtype=torch.float16)
    assert ours.to(half).dtype() == ours.to(other=bridge.from_dlpack(half)).dtype() == c10.float16
    for arguments in [("float32", False), ("cpu", torch.float32, True, False), (theirs, True)]:
        assert ours.to(*arguments) is ours
    for arguments in [("float32", False, True), ("cpu", torch.float32, True, True)]:
        copied = ours.to(*arguments)
        assert copied.data_ptr() != ours.data_ptr()
        assert copied.tolist() == ours.tolist()
    with pytest.raises(TypeError):
        ours.to("float32", False, True, True)


def test_memory_formats_are_torch_s() -> None:
    ours, theirs = pair((1, 2, 3, 4))
    last = torch.channels_last
    assert not ours.is_contiguous(memory_format=last)
    assert ours.is_contiguous(torch.contiguous_format)
    for copied in (ours.contiguous(memory_format=last), ours.clone(memory_format=last)):
        assert copied.strides() == theirs.contiguous(memory_format=last).stride()
        assert copied.is_contiguous(memory_format=last)
        assert copied.data_ptr() != ours.data_ptr()
    kept = ours[0, 0].t().clone(memory_format=torch.preserve_format)
    assert kept.strides() == (1, 4)


@pytest.mark.parametrize("name", ["int4", "uint4", "int2", "float4_e2m1fn", "float8_e4m3"])
def test_types_that_torch_does_not_hold_convert_by_numpy(name: str) -> None:
    ours = at.tensor([0.0, 1.0]).to(name)
    assert ours.to("float32").tolist() == ours.tolist() == [0.0, 1.0]
    assert ours.equal(ours.clone())
    assert not ours.equal(at.zeros((2,), name))
    ours[:] = np.ones(2, np.int64)
    assert ours.tolist() == [1.0, 1.0]


@needs_no_cuda
@pytest.mark.parametrize(
    "move", [lambda x: x.cuda(), lambda x: x.to("cuda"), lambda x: x.pin_memory()]
)
def test_moves_to_cuda_are_refused_without_cuda(move: Callable[[at.Tensor], at.Tensor]) -> None:
    tensor = at.ones((2,))
    with pytest.raises((RuntimeError, AssertionError)):
        move(tensor)
    assert tensor.tolist() == [1.0, 1.0]


@pytest.mark.cuda
def test_moves_to_cuda_and_back() -> None:
    tensor = at.arange(6, dtype="float32").view(2, 3)
    for moved in [tensor.cuda(), tensor.to("cuda"), tensor.to("cuda:0")]:
        assert moved.device().type == c10.CUDA
        assert moved.cpu().tolist() == tensor.tolist()
        assert (moved + 1).device() == moved.device()
    assert tensor.pin_memory().to_torch().is_pinned()


@pytest.mark.cuda
def test_cuda_takes_the_number_of_a_device() -> None:
    tensor, last = at.ones(2), torch.cuda.device_count() - 1
    for place in (last, f"cuda:{last}", torch.device("cuda", last)):
        assert tensor.cuda(place).device() == f"cuda:{last}"
    for place in ("cpu", c10.CPU, last + 1):
        with pytest.raises(c10.EnforceNotMet):
            tensor.cuda(place)


@pytest.mark.cuda
@pytest.mark.parametrize(
    "name", ["int4", "uint4", "float4_e2m1fn", "float8_e4m3", "float8_e4m3fn", "complex64"]
)
def test_every_type_is_filled_on_a_device(name: str) -> None:
    for make in (
        lambda: at.ones(3, dtype=name, device="cuda"),
        lambda: at.full((3,), 1, dtype=name, device="cuda"),
        lambda: at.zeros(3, dtype=name, device="cuda").fill_(1),
        lambda: at.zeros(3, dtype=name, device="cuda")[::-1].fill_(1),
    ):
        assert make().tolist() == [1, 1, 1]
    x = at.ones(3, dtype=name, device="cuda")
    x[0] = 0
    assert x.tolist() == [0, 1, 1]
    x[::2].zero_()
    assert x.tolist() == [0, 1, 0]


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn", "float8_e4m3"])
def test_types_that_torch_cannot_convert_are_refused_on_a_device(name: str) -> None:
    x = at.ones(3, dtype=name, device="cuda")
    for call in (
        lambda: x.to("float32"),
        lambda: at.ones(3, device="cuda").to(name),
        lambda: x.equal(x.clone()),
        lambda: x.copy_(at.ones(3, device="cuda")),
    ):
        with pytest.raises(BufferError, match=r"cpu\(\)"):
            call()
    assert x.cpu().to("float32").tolist() == [1, 1, 1]


@pytest.mark.cuda
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_elements_that_are_one_in_memory_are_written_on_a_device(device: str) -> None:
    """The last write stays, as in host memory."""
    x = at.zeros(1, 2, device=device)
    assert x.expand(3, 2).fill_(7).tolist() == [[7, 7]] * 3
    x.expand(2, 3, 2).zero_()
    assert x.tolist() == [[0, 0]]
    rows = at.arange(6, dtype="float32").view(3, 2)
    for source in (rows, rows.to(device), rows.to("int64").to(device)):
        x.expand(3, 2).copy_(source)
        assert x.tolist() == [[4, 5]]
        x.expand(3, 2)[::-1] = source
        assert x.tolist() == [[4, 5]]


@pytest.mark.cuda
def test_equal_compares_on_a_device_and_refuses_two_devices() -> None:
    x = at.tensor([1, 2]).cuda()
    assert x.equal(x.clone())
    assert x.equal([1, 2])
    assert not x.equal([1, 3])
    assert x[0].equal(1)
    for a, b in ((x, x.cpu()), (x.cpu(), x)):
        with pytest.raises(c10.EnforceNotMet, match="Copy one"):
            a.equal(b)


def test_resize_keeps_the_elements_and_memory_that_is_large_enough() -> None:
    tensor = at.arange(6, dtype="float32").view(2, 3)
    assert tensor.resize_(3, 2) is tensor
    assert tensor.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    address = tensor.data_ptr()
    assert tensor.resize_((2,)).tolist() == [0.0, 1.0]
    assert tensor.resize_(6).data_ptr() == address
    assert tensor.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert tensor.resize_([2, 50]).shape == (2, 50)
    assert tensor.view(-1)[:6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert tensor.resize_(0).numel() == 0
    assert tensor.resize_(()).shape == ()


@pytest.mark.parametrize(
    "dims", [(-1,), (2, -3), (2**40, 2**40), ("a",), (2.5,), (None,)], ids=repr
)
def test_resize_refuses_wrong_dims_and_changes_nothing(dims: Any) -> None:
    tensor = at.full((2, 3), 4.0)
    with pytest.raises((*ERRORS, MemoryError)):
        tensor.resize_(*dims)
    assert tensor.tolist() == [[4.0] * 3] * 2


def test_resize_of_memory_from_outside_stays_inside() -> None:
    memory = np.arange(6, dtype=np.float32)
    tensor = at.from_blob(memory, (6,))
    with pytest.raises(c10.EnforceNotMet, match="outside"):
        tensor.resize_(1000)
    assert (tensor.shape, tensor.tolist()) == ((6,), memory.tolist())
    assert tensor.resize_(2, 2).data_ptr() == memory.ctypes.data


def test_views_stay_valid_when_their_base_is_resized() -> None:
    tensor = at.full((100,), 3.0)
    view, array = tensor[10:20], tensor.numpy()
    tensor.resize_(100_000)
    tensor.fill_(4)
    garbage = [at.zeros((100,)) for _ in range(20)]
    assert len(garbage) == 20
    assert view.tolist() == [4.0] * 10  # of the same Storage, which has other memory now
    assert set(array.tolist()) == {3.0}  # holds the memory that it was made of


def test_set_takes_over_memory_and_view_of_its_source() -> None:
    tensor, source = at.zeros((2, 3)), at.arange(8, dtype="float32").view(2, 4)
    assert tensor.set_(source) is tensor
    assert (tensor.shape, tensor.data_ptr()) == ((2, 4), source.data_ptr())
    tensor.fill_(5)
    assert source.tolist() == [[5.0] * 4] * 2
    tensor.set_(source[1:, ::2])
    assert (tensor.shape, tensor.strides(), tensor.storage_offset()) == ((1, 2), (4, 2), 4)
    with pytest.raises(ERRORS):
        tensor.set_("text")
    assert tensor.shape == (1, 2)
    storage = source.storage()
    assert tensor.set_(storage, 2, (2, 2), (4, 1)).storage_offset() == 2
    assert tensor.strides() == (4, 1)
    assert tensor.set_(storage).shape == (8,)
    assert tensor.set_().shape == (0,)


@pytest.mark.parametrize(
    "arguments",
    [(3,), (0, None, (1,)), (-1, (2,)), (7, (2,)), (0, (2,), (1, 1)), (0.5, (2,)), (0, "ab")],
    ids=repr,
)
def test_set_that_is_refused_changes_nothing(arguments: Any) -> None:
    tensor, source = at.full((2, 3), 4.0), at.zeros((8,))
    for memory in (source, source.storage()):
        with pytest.raises(c10.EnforceNotMet):
            tensor.set_(memory, *arguments)
        assert tensor.tolist() == [[4.0] * 3] * 2


def test_equal_compares_sizes_and_elements() -> None:
    ours, theirs = pair((2, 3))
    assert ours.equal(ours.clone()) is True
    assert ours.equal(theirs.clone()) is True
    assert ours.t().equal(ours.t().contiguous()) is True
    assert ours.equal(ours + 1) is False
    assert ours.equal(ours.view(3, 2)) is False
    assert at.zeros((0,)).equal(at.zeros((0,))) is True
    assert at.full((1,), float("nan")).equal(at.full((1,), float("nan"))) is False
    with pytest.raises(ERRORS):
        ours.equal("text")
