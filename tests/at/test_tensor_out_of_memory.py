# SPDX-License-Identifier: Apache-2.0
"""Each allocation of an at.Tensor's methods may fail; the tensor is then as before."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from bridge import at
from tests.helpers.isolate import isolated
from tests.helpers.out_of_memory import (
    Call,
    check_call,
    require_failing_allocations,
    require_list_new,
    require_python_code,
)

require_failing_allocations()
MANY = (1,) * 9 + (2, 3, 4)  # more dimensions than a TensorImpl has room for in itself


def made() -> at.Tensor:
    return at.tensor([float(i) for i in range(24)]).view(2, 3, 4)


def many() -> at.Tensor:
    return at.zeros(*MANY)


def four() -> at.Tensor:
    return at.zeros(4)


def nothing() -> None:
    return None


OTHER = at.ones(2, 3, 4)
CALLS: dict[str, Call] = {
    "zeros": (nothing, lambda _: at.zeros(2, 3, 4)),
    "zeros of many dimensions": (nothing, lambda _: at.zeros(*MANY)),
    "empty": (nothing, lambda _: at.empty((2, 3, 4))),
    "full": (nothing, lambda _: at.full((2, 3), 2.5)),
    "ones_like": (made, at.ones_like),
    "tensor": (nothing, lambda _: at.tensor([[1.0, 2.0], [3.0, 4.0]])),
    "arange": (nothing, lambda _: at.arange(5)),
    "empty_strided": (nothing, lambda _: at.empty_strided((2, 3), (3, 1))),
    "from_blob": (lambda: bytearray(96), lambda b: at.from_blob(b, (24,), dtype="float32")),
    "view": (made, lambda t: t.view(4, 6)),
    "view of another type": (made, lambda t: t.view("int32")),
    "permute": (made, lambda t: t.permute(2, 0, 1)),
    "permute many": (many, lambda t: t.permute(*range(11, -1, -1))),
    "transpose": (made, lambda t: t.transpose(0, 1)),
    "squeeze": (many, lambda t: t.squeeze()),
    "unsqueeze": (made, lambda t: t.unsqueeze(0)),
    "expand": (lambda: at.zeros(1, 3), lambda t: t.expand(4, 3)),
    "narrow": (made, lambda t: t.narrow(1, 0, 2)),
    "select": (made, lambda t: t.select(1, 0)),
    "as_strided": (made, lambda t: t.as_strided((2, 2), (1, 2))),
    "flatten": (made, lambda t: t.flatten()),
    "reshape": (made, lambda t: t.permute(2, 1, 0).reshape(-1)),
    "index": (made, lambda t: t[1, :, ::2]),
    "index of many": (many, lambda t: t[..., 0]),
    "assignment": (four, lambda t: t.__setitem__(1, 5.0)),
    "assignment of a tensor": (made, lambda t: t.__setitem__(0, OTHER[0])),
    "contiguous": (lambda: at.zeros(2, 3).t(), lambda t: t.contiguous()),
    "clone": (made, lambda t: t.clone()),
    "detach": (made, lambda t: t.detach()),
    "copy_": (made, lambda t: t.copy_(OTHER)),
    "fill_": (made, lambda t: t.fill_(2.0)),
    "zero_": (made, lambda t: t.zero_()),
    "resize_": (made, lambda t: t.resize_(5, 6, 7)),
    "resize_ to many": (made, lambda t: t.resize_(*MANY)),
    "set_": (made, lambda t: t.set_(OTHER)),
    "tolist": (made, lambda t: t.tolist()),
    "item": (lambda: at.ones(1), lambda t: (t.item(), float(t), int(t), bool(t))),
    "repr": (made, repr),
    "deepcopy": (made, copy.deepcopy),
    "pickle": (made, lambda t: t.__reduce_ex__(2)),
    "metadata": (made, lambda t: (t.data_ptr(), t.shape, t.strides(), t.stride(0), t.dtype())),
    "metadata, further": (
        made,
        lambda t: (
            (t.size(), t.size(0), t.sizes(), t.dim(), t.ndim, t.numel(), t.itemsize(), t.nbytes()),
            (t.is_contiguous(), t.storage_offset(), t.storage(), t.device(), t.readonly),
            (t.defined(), t.is_same(t), t.unsafeGetTensorImpl()),
        ),
    ),
    "alias": (made, lambda t: t.alias()),
    "cpu": (made, lambda t: t.cpu()),
    "to": (made, lambda t: t.to("cpu", copy=True)),
    "to another type": (made, lambda t: t.to("float64")),
    "equal": (made, lambda t: t.equal(OTHER)),
    "diagonal": (made, lambda t: t.diagonal(0, 1, 2)),
    "slice": (made, lambda t: t.slice(1, 0, 3, 2)),
    "t": (lambda: at.zeros(2, 3), lambda t: t.t()),
    "unfold": (made, lambda t: t.unfold(2, 2, 1)),
    "ones": (nothing, lambda _: at.ones(2, 3)),
    "eye": (nothing, lambda _: at.eye(3)),
    "like": (made, lambda t: (at.empty_like(t), at.zeros_like(t), at.full_like(t, 2.0))),
    "rand": (nothing, lambda _: (at.rand(2, 3), at.randn(2, 3))),
    "torch's method": (made, lambda t: (t.add(OTHER), t.sum())),
    "to_torch": (made, lambda t: t.to_torch()),
    "to_torch of many": (many, lambda t: t.to_torch()),
    "numpy": (made, lambda t: t.numpy()),
    "numpy of many": (many, lambda t: t.numpy()),
    "np.asarray": (made, np.asarray),
    "bytes": (made, bytes),
    "memoryview": (made, memoryview),
    "memoryview of many": (many, memoryview),
    "__dlpack__": (made, lambda t: t.__dlpack__(max_version=(1, 0))),
    "__dlpack__, old": (made, lambda t: t.__dlpack__()),
    "__dlpack__ of a copy": (made, lambda t: t.__dlpack__(copy=True)),
    "__dlpack__ of many": (many, lambda t: t.__dlpack__(max_version=(1, 0))),
    "__array_interface__": (made, lambda t: t.__array_interface__),
    "__cuda_array_interface__": (made, lambda t: hasattr(t, "__cuda_array_interface__")),
    "__arrow_c_schema__": (made, lambda t: t.__arrow_c_schema__()),
    "__arrow_c_array__": (four, lambda t: t.__arrow_c_array__()),
    "__arrow_c_array__ of three dimensions": (made, lambda t: t.__arrow_c_array__()),
    "__arrow_c_device_array__": (made, lambda t: t.__arrow_c_device_array__()),
}
# Lists made by C; code in Python that does more (`require_python_code`), or leaves memory behind.
MAKES_LISTS = {"tensor", "tolist", "__array_interface__"}
RUNS_PYTHON = {"arange", "repr", "torch's method"}
MAY_LEAK = {"repr", "torch's method"}


@isolated
@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_memory_changes_nothing_and_leaks_nothing(name: str) -> None:
    if name in MAKES_LISTS:
        require_list_new()
    if name in RUNS_PYTHON:
        require_python_code()
    wrong: list[Any] = check_call(CALLS[name], python_may_leak=name in MAY_LEAK)
    assert not wrong, "\n".join(wrong)
