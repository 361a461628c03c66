# SPDX-License-Identifier: Apache-2.0
"""Modes and defaults of torch that are on when the package is used: memory is memory still.

Each test runs in a process of its own, since it changes what holds for all of torch.
"""

import warnings

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10
from tests.helpers.check import check_tensor
from tests.helpers.isolate import isolated


@isolated
def test_a_default_device_of_torch_changes_nothing() -> None:
    """The package's own default is the CPU, whatever torch's is."""
    t = torch.arange(3.0)
    with torch.device("meta"):
        x = bridge.from_dlpack(t)
        assert x.numpy().tolist() == [0, 1, 2]
        assert x.add(1).tolist() == [1, 2, 3]
        assert x.clone().to_torch().tolist() == [0, 1, 2]
        assert bridge.to_torch(np.ones(2)).tolist() == [1, 1]
        assert at.ones(2).tolist() == [1, 1]
        assert at.arange(3).tolist() == [0, 1, 2]
        assert at.eye(1).tolist() == [[1]]
        assert at.tensor([1.5]).tolist() == [1.5]
        assert at.rand(2).device() == "cpu"


@isolated
def test_a_default_type_of_torch_changes_nothing() -> None:
    torch.set_default_dtype(torch.float64)
    assert at.ones(2).dtype() == c10.float32
    assert at.rand(2).dtype() == c10.float32
    assert bridge.from_dlpack(torch.ones(2)).dtype() == c10.float64


@isolated
def test_tensors_of_inference_mode_are_read_and_written_outside_of_it() -> None:
    """What came in within it can be read and written outside of it."""
    with torch.inference_mode():
        t = torch.ones(3)
        x = bridge.from_dlpack(t)
        made = at.ones(3).add(1)
        view = x.numpy()
    view[0] = 5
    assert t[0].item() == 5
    x.fill_(2)
    assert t.tolist() == [2, 2, 2]
    assert x.add(1).tolist() == [3, 3, 3]
    assert made.tolist() == [2, 2, 2]
    made.fill_(4)
    assert made.numpy().tolist() == [4, 4, 4]
    check_tensor(x, (3,), address=t.data_ptr())


@isolated
def test_tensors_take_part_in_gradients_of_torch_as_constants() -> None:
    x = at.ones(3)
    weight = torch.ones(3, requires_grad=True)
    (x.to_torch() * weight).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [1, 1, 1]
    with torch.no_grad():
        assert torch.mul(x, weight).tolist() == [1, 1, 1]


@isolated
def test_real_memory_is_read_while_torch_fakes() -> None:
    from torch._subclasses import FakeTensorMode

    t = torch.arange(3.0)
    x = bridge.from_dlpack(t)
    ours = at.ones(2)
    with FakeTensorMode():
        assert x.tolist() == [0, 1, 2]
        assert ours.tolist() == [1, 1]
        assert bridge.from_dlpack(t).tolist() == [0, 1, 2]
        with pytest.raises(BufferError):
            bridge.from_dlpack(torch.ones(2))
    assert x.numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("bits", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("sign", ["int", "uint"])
@isolated
def test_small_integers_are_not_taken_for_bytes(sign: str, bits: int) -> None:
    """torch's own DLPack calls them int8 and uint8."""
    warnings.simplefilter("ignore")
    t = torch.zeros(8, dtype=torch.uint8).view(getattr(torch, f"{sign}{bits}"))
    warnings.simplefilter("error")
    try:
        x = bridge.from_dlpack(t)
    except BufferError:
        return
    assert x.dtype().name == f"{sign}{bits}"


def test_memory_is_kept_while_torch_traces_or_fakes() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    t = torch.arange(3.0)
    held = []

    def traced(x: torch.Tensor) -> torch.Tensor:
        held.append(bridge.to_numpy(t))
        return x + 1

    make_fx(traced)(torch.ones(2))
    from torch._subclasses import FakeTensorMode

    other = torch.arange(3.0)
    with FakeTensorMode():
        held.append(bridge.to_numpy(other))
    for tensor, array in zip((t, other), held, strict=True):
        assert array.ctypes.data == tensor.data_ptr()
        with pytest.raises(RuntimeError, match="resiz"):
            tensor.resize_(1 << 20)


def test_bits_without_a_meaning_are_refused() -> None:
    t = torch.zeros(2, dtype=torch.uint8).view(torch.bits8)
    for copy in (None, False, True):
        with pytest.raises(BufferError, match=r"view\(torch\.uint8\)") as caught:
            bridge.from_dlpack(t, copy=copy)
        assert "\n" not in str(caught.value)


@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="torch 2.8 has float4")
def test_packed_numbers_are_shared_and_not_unpacked() -> None:
    t = torch.zeros(2, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
    x = bridge.from_dlpack(t)
    assert "dtype=float4_e2m1fn_x2" in repr(x)
    with pytest.raises(BufferError, match="view"):
        x.tolist()
    assert x.view("uint8").tolist() == [0, 0]
