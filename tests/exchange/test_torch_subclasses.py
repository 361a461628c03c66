# SPDX-License-Identifier: Apache-2.0
"""Subclasses of torch.Tensor that hold other tensors: errors name the call that gives one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import bridge
from bridge import c10
from bridge.caffe2 import workspace
from tests.helpers.isolate import run_python

DISTRIBUTED = """
import sys
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import bridge
from bridge.caffe2 import workspace
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor

dist.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{sys.argv[1]}")
mesh = init_device_mesh("cpu", (1,))

def refused(x, *calls):
    for door in (bridge.from_dlpack, bridge.to_numpy, lambda x: workspace.FeedBlob("x", x)):
        try:
            door(x)
        except BufferError as error:
            assert all(call in str(error) for call in calls), error
        else:
            raise AssertionError(type(x))

whole = torch.arange(4.0)
spread = distribute_tensor(whole, mesh, [Shard(0)])
refused(spread, "to_local()", "full_tensor()")
assert bridge.to_numpy(spread.to_local()).tolist() == [0, 1, 2, 3]
assert bridge.to_numpy(spread.full_tensor()).tolist() == [0, 1, 2, 3]
module = torch.nn.Linear(2, 2)
fully_shard(module, mesh=mesh)
refused(module.weight, "to_local()", "full_tensor()")
assert bridge.to_numpy(module.weight.detach().to_local()).shape == (2, 2)
pending = collectives.all_reduce(whole, "sum", mesh)
refused(pending, "wait()")
assert bridge.to_numpy(pending.wait()).tolist() == [0, 1, 2, 3]
dist.destroy_process_group()
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9),
    reason="torch 2.6 warns of a mesh of CPUs, and of a folder that it leaves",
)
def test_distributed_tensors_name_their_local_tensor(tmp_path: Path) -> None:
    run_python(DISTRIBUTED, str(tmp_path / "store"))


class Quantised(torch.Tensor):
    """Whole numbers and a scale."""

    @staticmethod
    def __new__(cls, numbers: torch.Tensor, scale: float) -> Quantised:
        made: Quantised = torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, numbers.shape, dtype=torch.float32
        )
        return made

    def __init__(self, numbers: torch.Tensor, scale: float) -> None:
        self.numbers = numbers
        self.scale = scale

    def dequantize(self) -> torch.Tensor:
        return self.numbers.float() * self.scale

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
        raise NotImplementedError(function)


class Pair(Quantised):
    """Two tensors, which are not quantised."""

    dequantize = torch.Tensor.dequantize

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["numbers", "other"], None

    @staticmethod
    def __tensor_unflatten__(*args: Any) -> Any:
        raise NotImplementedError


def test_quantised_subclasses_name_dequantize() -> None:
    x = Quantised(torch.ones(2, dtype=torch.int8), 0.5)
    with pytest.raises(BufferError, match=r"Quantised .*tensor\.dequantize\(\)"):
        bridge.from_dlpack(x)
    assert bridge.to_numpy(x.dequantize()).tolist() == [0.5, 0.5]
    assert "dequantize" in str(bridge.explain(x).note)


def test_other_subclasses_name_their_tensors() -> None:
    x = Pair(torch.ones(2), 0.5)
    x.other = torch.ones(1)  # type: ignore[attr-defined]
    with pytest.raises(BufferError, match=r"Pair .*tensor\.numbers, tensor\.other"):
        bridge.to_numpy(x)


@pytest.mark.filterwarnings("ignore::UserWarning")  # masked tensors are a prototype
def test_masked_tensors_name_get_data() -> None:
    x = torch.masked.masked_tensor(torch.arange(2.0), torch.tensor([True, False]))
    with pytest.raises(BufferError, match=r"MaskedTensor .*get_data\(\)"):
        bridge.from_dlpack(x)
    assert bridge.to_numpy(x.get_data()).tolist() == [0, 1]
    assert "get_data" in str(bridge.explain(x).note)


@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9), reason="traced from torch 2.9 on"
)
def test_fake_tensors_name_strict_export() -> None:
    with FakeTensorMode():
        x = torch.ones(2)
    with pytest.raises(BufferError, match=r"strict=True.*custom operator"):
        bridge.from_dlpack(x)

    class Converts(torch.nn.Module):
        def forward(self, t: Any) -> Any:
            return bridge.to_torch(bridge.from_dlpack(t)) + 1

    given = (torch.ones(2),)
    with pytest.raises(BufferError, match="strict=True"):
        torch.export.export(Converts(), given, strict=False)
    exported = torch.export.export(Converts(), given, strict=True)
    assert exported.module()(*given).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("x", "entry"),
    [
        ({"a": torch.ones(1)}, "x['a']"),
        ({"a": 1, "b": {"c": np.ones(1)}}, "x['b']"),
        ([1, np.ones(1)], "x[1]"),
        ((bridge.at.ones(1),), "x[0]"),
        ([{"a": torch.ones(1)}], "x[0]"),
        (torch.nn.Linear(1, 1).state_dict(), "x['weight']"),
    ],
)
def test_containers_of_tensors_name_convert(x: Any, entry: str) -> None:
    for door in (bridge.from_dlpack, bridge.explain):
        with pytest.raises(TypeError, match=r"bridge\.convert\(x, 'numpy'\)") as caught:
            door(x)
        assert entry in str(caught.value)


def test_containers_without_tensors_are_refused() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for x in ({}, {"a": 1}, loop):
        with pytest.raises(TypeError, match="no tensor's memory"):
            bridge.from_dlpack(x)


def test_the_gradient_of_integers_is_refused() -> None:
    jax = pytest.importorskip("jax")
    x = jax.grad(lambda x: jax.numpy.sum(x) * 1.0, allow_int=True)(jax.numpy.arange(3))
    with pytest.raises(BufferError, match=r"float0.*numpy\.zeros"):
        bridge.from_dlpack(x)
    with pytest.raises(c10.EnforceNotMet, match=r"float0.*numpy\.zeros"):
        workspace.FeedBlob("float0", x)
    assert not workspace.HasBlob("float0")


@pytest.mark.skipif(
    not hasattr(torch.utils.dlpack, "ReadOnlyTensorWrapper"), reason="torch 2.14 exports read-only"
)
def test_tensors_that_torch_exports_read_only_are_read_only() -> None:
    t = torch.arange(3.0)
    wrapped = torch.utils.dlpack.ReadOnlyTensorWrapper(t)
    x = bridge.from_dlpack(wrapped)
    assert x.data_ptr() == t.data_ptr()
    with pytest.raises(RuntimeError, match="read-only"):
        x.fill_(1)
    assert not bridge.to_numpy(wrapped).flags.writeable and bridge.explain(wrapped).readonly
    assert bridge.to_torch(wrapped) is bridge.to_torch(x) is wrapped
    assert (x + 1).tolist() == [1, 2, 3] and not x.reshape(3, 1).numpy().flags.writeable
    assert bridge.from_dlpack(wrapped, copy=True).fill_(7).tolist() == [7, 7, 7]
    capsule = t.__dlpack__(max_version=(1, 0), read_only=True)
    assert not bridge.from_dlpack(capsule).numpy().flags.writeable
    with pytest.raises(BufferError, match="requires grad"):
        bridge.from_dlpack(torch.utils.dlpack.ReadOnlyTensorWrapper(t.requires_grad_()))
    assert t.tolist() == [0, 1, 2]
