# SPDX-License-Identifier: Apache-2.0
"""Whether an imported tensor is still itself, read in torch's objects: never a wrong yes."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import bridge
from bridge import at
from bridge.exchange.torch_layout import is_known

DTYPES = [
    torch.bool,
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex64, torch.complex128, torch.uint16, torch.float8_e4m3fn),
]
SHAPES = [(), (1,), (0,), (4,), (2, 3), (3, 1, 2), (2, 1, 2, 1, 3), (1, 2, 1, 2, 1, 2, 1)]


def test_the_fields_are_found_where_threads_have_a_lock() -> None:
    bridge.from_dlpack(torch.ones(1))
    assert is_known() == getattr(sys, "_is_gil_enabled", lambda: True)()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_an_unchanged_tensor_comes_back(dtype, shape) -> None:
    t = torch.zeros((9, *shape), dtype=torch.uint8).to(dtype)[4]
    x = bridge.from_dlpack(t)
    assert bridge.to_torch(x) is t
    t.zero_()
    assert x.to_torch() is t


def changed_type(t):
    t.data = t.data.view(torch.int32)


def changed_offset(t):
    t.data = t.data.as_strided(t.shape, t.stride(), t.storage_offset() + 1)


def changed_stride(t):
    t.data = t.data.as_strided(t.shape, (t.stride(0) + 1, *t.stride()[1:]))


def other_storage(t):
    t.set_(t.clone())


def other_memory_of_the_storage(t):
    t.untyped_storage().resize_(1 << 20)


def swapped(t):
    torch.utils.swap_tensors(t, t.clone())


CHANGES = {
    "type": changed_type,
    "sizes": lambda t: t.resize_(t.shape[1], t.shape[0]),
    "dimensions": lambda t: t.unsqueeze_(0),
    "transposed": lambda t: t.t_(),
    "stride": changed_stride,
    "offset": changed_offset,
    "storage": other_storage,
    "memory of the storage": other_memory_of_the_storage,
    "negative": lambda t: setattr(t, "data", torch._neg_view(t.data)),
    "negative in place": lambda t: torch._C._set_neg(t, True),
    "shared": lambda t: t.share_memory_(),
    "swapped": swapped,
    "sparse": lambda t: torch.utils.swap_tensors(t, t.to_sparse()),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_tensor_does_not_come_back(change) -> None:
    t = torch.arange(48.0).as_strided((3, 2), (4, 2), 5)
    x = bridge.from_dlpack(t)
    assert bridge.to_torch(x) is t
    CHANGES[change](t)
    try:
        found = bridge.to_torch(x)
    except BufferError:
        return
    assert found is not t
    assert found.tolist() == [[5.0, 7.0], [9.0, 11.0], [13.0, 15.0]]


SAME = {
    "requires grad": lambda t: t.requires_grad_(),
    "resized to its sizes": lambda t: t.resize_(t.shape),
    "stride of one element": lambda t: t.as_strided_(t.shape, (7, *t.stride()[1:])),
    "no lazy bit": lambda t: torch._C._set_neg(t, False),
    "written": lambda t: t.mul_(1),
    "shared with NumPy": lambda t: t.numpy(),
    "Parameter": lambda t: setattr(t, "__class__", torch.nn.Parameter),
}


@pytest.mark.parametrize("change", SAME)
def test_a_tensor_that_is_still_itself_comes_back(change) -> None:
    t = torch.arange(3.0).reshape(1, 3)
    x = bridge.from_dlpack(t)
    SAME[change](t)
    assert bridge.to_torch(x) is t
    assert x.tolist() == [[0, 1, 2]]


def test_a_tensor_that_was_swapped_back_comes_back() -> None:
    t, other = torch.ones(3), torch.zeros(3)
    x = bridge.from_dlpack(t)
    torch.utils.swap_tensors(t, other)
    torch.utils.swap_tensors(t, other)
    assert bridge.to_torch(x) is t


def test_a_module_that_changes_type_gives_other_parameters_and_leaves_what_was_taken() -> None:
    module = torch.nn.Linear(2, 2).requires_grad_(False)
    detached = module.weight.detach()
    of_detached, of_parameter = bridge.from_dlpack(detached), bridge.from_dlpack(module.weight)
    module.half()
    assert bridge.to_torch(of_detached) is detached
    with pytest.raises(BufferError, match="Import it again"):
        bridge.to_torch(of_parameter)


@pytest.mark.parametrize("cls", [torch.Tensor, torch.nn.Parameter])
def test_a_storage_that_has_less_memory_at_the_same_address_is_an_error(cls) -> None:
    for nbytes in (n - less for n in (1 << 22, 1 << 14, 1 << 10) for less in range(4, 900, 16)):
        t = torch.ones(nbytes // 4 + 225).as_subclass(cls).requires_grad_(False)
        x = bridge.from_dlpack(t)
        x.sum()
        untyped = t.untyped_storage()
        address = untyped.data_ptr()
        untyped.resize_(0)
        untyped.resize_(nbytes)
        if untyped.data_ptr() == address:
            break
    else:
        pytest.skip("the allocator gives no address twice")
    for read in (x.sum, x.numpy, x.to_torch, lambda: x[-1].item()):
        with pytest.raises(BufferError, match="resized under the tensor"):
            read()


def test_a_conjugate_does_not_come_back() -> None:
    t = torch.tensor([1 + 2j, 3 - 4j])
    x = bridge.from_dlpack(t)
    t.data = t.data.conj()
    assert bridge.to_torch(x) is not t
    assert bridge.to_torch(x).tolist() == [1 + 2j, 3 - 4j]


def test_a_conjugate_bit_set_in_place_is_not_seen() -> None:
    t = torch.tensor([1 + 2j, 3 - 4j])
    x = bridge.from_dlpack(t)
    torch._C._set_conj(t, True)
    assert bridge.to_torch(x) is not t
    assert bridge.to_torch(x).tolist() == x.tolist() == [1 + 2j, 3 - 4j]


@pytest.mark.parametrize("make", [at.zeros, lambda *s: bridge.from_dlpack(torch.zeros(s))])
def test_views_that_go_out_again_and_again_have_metadata_of_their_own(make) -> None:
    view = make(4, 3)[1:]
    first, second, third = (view.to_torch() for _ in range(3))
    first.t_()
    second.requires_grad_()
    third.resize_(1)
    fourth, fifth = view.to_torch(), view.to_torch()
    fourth.fill_(7)
    assert fourth is not fifth
    assert fifth.shape == (3, 3)
    assert not fifth.requires_grad
    assert view.tolist() == fifth.tolist() == [[7.0] * 3] * 3


def test_a_view_that_went_out_twice_sees_that_its_memory_was_replaced() -> None:
    t = torch.zeros(4, 3)
    view = bridge.from_dlpack(t)[1:]
    assert view.to_torch().data_ptr() == view.to_torch().data_ptr() == view.to_torch().data_ptr()
    t.set_(torch.ones(4, 3))
    with pytest.raises(BufferError, match="Import it again"):
        view.to_torch()


def test_the_fields_are_found_inside_of_modes_and_transforms() -> None:
    # the first tensor may be seen anywhere
    script = """
import torch, bridge
from torch._subclasses.fake_tensor import FakeTensorMode
t = torch.ones(3)
# Before the device: torch 2.7 and 2.8 import torch._dynamo here, which fails under another device.
fake = FakeTensorMode(allow_non_fake_inputs=True)
with torch.inference_mode(), torch.device("meta"), fake:
    bridge.from_dlpack(t)
from bridge.exchange.torch_layout import is_known
import sys
assert is_known() == getattr(sys, "_is_gil_enabled", lambda: True)()
assert bridge.to_torch(bridge.from_dlpack(t)) is t
"""
    subprocess.run([sys.executable, "-c", script], check=True)
