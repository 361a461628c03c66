# SPDX-License-Identifier: Apache-2.0
"""An imported torch tensor that its owner changes: the old values, or an error; never others."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import core, workspace

WIDTHS = [
    [torch.uint8, torch.int8, torch.bool, torch.float8_e4m3fn, torch.float8_e5m2],
    [torch.int16, torch.uint16, torch.float16, torch.bfloat16],
    [torch.int32, torch.float32, torch.uint32],
    [torch.int64, torch.float64, torch.complex64],
]
PAIRS = [(a, b) for width in WIDTHS for a in width for b in width if a is not b]

READS = {
    "tolist": lambda x: x.tolist(),
    "sum": lambda x: x.sum(),
    "mul_": lambda x: x.mul_(2),
    "to_torch": bridge.to_torch,
    "convert": lambda x: bridge.convert(x, "torch"),
    "to_numpy": bridge.to_numpy,
    "collate": lambda x: default_collate([x]),
    "at": lambda x: at.add(x, 1),
    "torch": lambda x: torch.add(x, 1),
    "dlpack": torch.from_dlpack,
}


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=str)
def test_another_type_of_the_same_width_is_an_error(a, b) -> None:
    t = torch.zeros(4, dtype=torch.uint8).repeat(8).view(a)
    x = bridge.from_dlpack(t)
    t.data = t.data.view(b)
    with pytest.raises(c10.EnforceNotMet, match="Import it again"):
        x.tolist()
    with pytest.raises(c10.EnforceNotMet, match="Import it again"):
        bridge.to_torch(x)


def other_type(t):
    t.data = t.data.view(torch.int32)


def other_memory(t):
    t.data = torch.full((2, 3), 5.0)


def other_source(t):
    t.set_(torch.full((2, 3), 5.0))


def swapped(t):
    torch.utils.swap_tensors(t, torch.full((2, 3), 5.0))


def bigger(t):
    t.resize_(100)


def freed(t):
    t.untyped_storage().resize_(0)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("change", [other_type, other_memory, other_source, swapped, bigger, freed])
def test_a_change_of_memory_or_type_is_the_error_of_tolist(change, read) -> None:
    t = torch.arange(6.0).reshape(2, 3)
    x = bridge.from_dlpack(t)
    change(t)
    with pytest.raises(c10.EnforceNotMet):
        x.tolist()
    with pytest.raises((c10.EnforceNotMet, BufferError)):
        READS[read](x)


SIZES = {
    "t_": lambda t: t.t_(),
    "unsqueeze_": lambda t: t.unsqueeze_(0),
    "as_strided_": lambda t: t.as_strided_((3,), (2,)),
    "resize_": lambda t: t.resize_(2),
    "neg": lambda t: setattr(t, "data", torch._neg_view(t)),
}


@pytest.mark.parametrize("change", SIZES)
def test_a_change_of_sizes_or_lazy_bits_is_not_seen(change) -> None:
    t = torch.arange(6.0).reshape(2, 3)
    x = bridge.from_dlpack(t)
    assert bridge.to_torch(x) is t
    SIZES[change](t)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.sum().item() == 15
    out = bridge.to_torch(x)
    assert out is not t
    assert out.tolist() == x.tolist()
    assert out.data_ptr() == x.data_ptr()
    assert default_collate([x]).tolist() == [x.tolist()]
    assert x.mul_(2).tolist() == [[0, 2, 4], [6, 8, 10]]


def test_a_conjugate_is_not_seen() -> None:
    t = torch.ones(3, dtype=torch.complex64) * 1j
    x = bridge.from_dlpack(t)
    t.data = t.conj()
    assert x.tolist() == [1j] * 3
    assert x.sum().item() == 3j
    assert bridge.to_torch(x).tolist() == [1j] * 3


def test_memory_that_numpy_has_stays_with_its_old_type() -> None:
    t = torch.ones(3)
    x = bridge.from_dlpack(t)
    array = x.numpy()
    t.data = t.data.view(torch.int32)
    assert x.sum().item() == 3.0
    out = bridge.to_torch(x)
    assert (out.dtype, out.data_ptr()) == (torch.float32, array.ctypes.data)


def test_less_memory_at_the_same_address_is_not_read_past_its_end() -> None:
    t = torch.ones(1000)
    x = bridge.from_dlpack(t)
    x.tolist()
    small = torch.from_dlpack(at.from_blob(t.data_ptr(), (2,), options="float32"))
    t.data = small
    with pytest.raises(c10.EnforceNotMet, match="resized under the tensor"):
        x.tolist()


@pytest.mark.usefixtures("fresh_workspace")
@pytest.mark.parametrize("recorded", [0, 3])
@pytest.mark.parametrize("change", [other_type, other_memory, bigger, freed])
def test_a_blob_whose_tensor_changed_is_an_error_in_operators(change, recorded) -> None:
    t = torch.arange(6.0).reshape(2, 3)
    workspace.FeedBlob("x", t)
    relu = core.CreateOperator("Relu", ["x"], ["y"])
    net = core.Net("relu")
    net.Relu(["x"], ["z"])
    workspace.CreateNet(net)
    for _ in range(recorded):
        workspace.RunOperatorOnce(relu)
        workspace.RunNet(net)
    assert workspace.FetchTorch("x") is t
    change(t)
    for run in (
        lambda: workspace.RunOperatorOnce(relu),
        lambda: workspace.RunNet(net),
        lambda: workspace.FetchBlob("x"),
        lambda: workspace.FetchTorch("x"),
    ):
        with pytest.raises(c10.EnforceNotMet):
            run()


@pytest.mark.usefixtures("fresh_workspace")
@pytest.mark.parametrize("recorded", [0, 3])
@pytest.mark.parametrize("change", SIZES)
def test_a_blob_keeps_its_sizes(change, recorded) -> None:
    t = torch.arange(6.0).reshape(2, 3)
    workspace.FeedBlob("x", t)
    relu = core.CreateOperator("Relu", ["x"], ["y"])
    for _ in range(recorded):
        workspace.RunOperatorOnce(relu)
    SIZES[change](t)
    workspace.RunOperatorOnce(relu)
    np.testing.assert_array_equal(workspace.FetchBlob("y"), np.arange(6.0).reshape(2, 3))
    fetched = workspace.FetchTorch("x")
    assert fetched is not t
    assert fetched.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_the_error_after_set_names_another_offset_of_the_same_storage() -> None:
    whole = torch.arange(10.0)
    t = whole[:3]
    x = bridge.from_dlpack(t)
    t.set_(whole.untyped_storage(), 4, (3,), (1,))
    with pytest.raises(c10.EnforceNotMet, match="another offset of its storage"):
        x.tolist()
    with pytest.raises(BufferError, match="another offset of its storage"):
        x.to_torch()


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is")
def test_a_dual_tensor_is_refused_as_one_that_requires_grad() -> None:
    import torch.autograd.forward_ad as forward

    plain = torch.ones(2)
    with forward.dual_level():
        dual = forward.make_dual(plain, torch.ones(2))
        for door in (
            bridge.from_dlpack,
            bridge.asarray,
            bridge.to_numpy,
            lambda t: bridge.convert(t, "numpy"),
            lambda t: workspace.FeedBlob("dual", t),
            *([bridge.to_jax] if find_spec("jax") else []),
            lambda t: at.ones(2).add_(t),
            lambda t: np.add(at.ones(2), t),
            lambda t: np.add(t, caffe2.Tensor(at.ones(2))),
            lambda t: np.concatenate([at.ones(2), t]),
        ):
            with pytest.raises((BufferError, c10.EnforceNotMet), match="tangent"):
                door(dual)
        assert bridge.from_dlpack(plain).tolist() == [1, 1]
        assert bridge.from_dlpack(torch.ones(2, dtype=torch.int64)).tolist() == [1, 1]
        result = at.mul(at.ones(2), dual)
        assert forward.unpack_dual(result).tangent.tolist() == [1, 1]
    assert not workspace.HasBlob("dual")
