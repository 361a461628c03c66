# SPDX-License-Identifier: Apache-2.0
"""Each allocation of a conversion may fail; what is converted is then as before, and not kept."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2, tf
from tests.helpers.isolate import isolated
from tests.helpers.out_of_memory import (
    Call,
    check_call,
    require_failing_allocations,
    require_list_new,
)

require_failing_allocations()
MANY = (1,) * 9 + (2, 3, 4)  # more dimensions than a TensorImpl has room for in itself


def made() -> at.Tensor:
    return at.tensor([float(i) for i in range(24)]).view(2, 3, 4)


def frozen() -> np.ndarray[Any, Any]:
    found = np.zeros(3)
    found.flags.writeable = False
    return found


def nothing() -> None:
    return None


class ByMethod:
    def __init__(self) -> None:
        self.array = np.zeros((2, 3))

    def __dlpack__(self, **asked: Any) -> Any:
        return self.array.__dlpack__(**asked)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class ByArrow:
    def __init__(self) -> None:
        self.tensor = at.zeros(6)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.tensor.__arrow_c_array__()


def audited(t: at.Tensor) -> None:
    with bridge.audit():
        t.numpy()


def uncopied(t: at.Tensor) -> None:
    with bridge.no_copy():
        bridge.from_dlpack(t)


MESSAGE = tf.make_tensor_proto(made())
CALLS: dict[str, Call] = {
    "NumPy": (lambda: np.zeros((2, 3, 4)), bridge.from_dlpack),
    "NumPy with strides": (lambda: np.zeros((2, 3, 4)).T[::2], bridge.from_dlpack),
    "NumPy backwards": (lambda: np.arange(5.0)[::-1], bridge.from_dlpack),
    "NumPy read-only": (frozen, bridge.from_dlpack),
    "NumPy of many dimensions": (lambda: np.zeros(MANY), bridge.from_dlpack),
    "NumPy copied": (lambda: np.zeros((2, 3)), lambda a: bridge.from_dlpack(a, copy=True)),
    "bytearray": (lambda: bytearray(8), bridge.from_dlpack),
    "bytes": (lambda: bytes(8), bridge.from_dlpack),
    "array.array": (lambda: array.array("d", [1, 2]), bridge.from_dlpack),
    "memoryview": (lambda: memoryview(bytearray(24)).cast("d"), bridge.from_dlpack),
    "capsule": (made, lambda t: bridge.from_dlpack(t.__dlpack__())),
    "versioned capsule": (made, lambda t: bridge.from_dlpack(t.__dlpack__(max_version=(1, 0)))),
    "torch": (lambda: torch.zeros(2, 3, 4), bridge.from_dlpack),
    "torch with strides": (lambda: torch.zeros(2, 3, 4).permute(2, 0, 1), bridge.from_dlpack),
    "torch of many dimensions": (lambda: torch.zeros(MANY), bridge.from_dlpack),
    "__dlpack__": (ByMethod, bridge.from_dlpack),
    "Arrow": (ByArrow, bridge.from_dlpack),
    "at.Tensor": (made, bridge.from_dlpack),
    "caffe2.Tensor": (lambda: caffe2.Tensor(made()), bridge.from_dlpack),
    "wrapper to wrapper": (made, lambda t: at.Tensor(caffe2.Tensor(t))),
    "asarray": (lambda: [[1.0, 2.0], [3.0, 4.0]], bridge.asarray),
    "to_numpy": (made, bridge.to_numpy),
    "to_torch": (made, bridge.to_torch),
    "to_torch of NumPy": (lambda: np.zeros((2, 3)), bridge.to_torch),
    "convert": (made, lambda t: (bridge.convert(t, "numpy"), bridge.convert(t, "caffe2"))),
    "convert to wrappers": (
        made,
        lambda t: (
            bridge.convert(t, "at"),
            bridge.convert(t, "caffe2"),
            bridge.convert(t, "torch"),
        ),
    ),
    "explain": (made, lambda t: bridge.explain(t, caffe2.Tensor(t))),
    "shares_memory": (made, lambda t: bridge.shares_memory(t, t.to_torch())),
    "audit": (made, lambda t: audited(t)),
    "no_copy": (made, lambda t: uncopied(t)),
    "register": (nothing, lambda _: bridge.register("library", types=(ByMethod,))),
    "torch.from_dlpack": (made, torch.from_dlpack),
    "np.from_dlpack": (made, np.from_dlpack),
    "make_tensor_proto": (made, tf.make_tensor_proto),
    "from_tensor_proto": (nothing, lambda _: tf.from_tensor_proto(MESSAGE)),
    "ArrayRef": (nothing, lambda _: c10.ArrayRef(list(range(300, 330)))),
    "ArrayRef of a buffer": (lambda: array.array("q", [1, 2, 3]), c10.ArrayRef),
    "parts of an ArrayRef": (
        lambda: c10.ArrayRef([1000, 2000, 3000]),
        lambda r: (r[1:], r.slice(1, 1), r.vec(), hash(r), repr(r), r.data, r.index(2000)),
    ),
    "Device": (nothing, lambda _: (c10.Device("cuda:1"), str(c10.Device("cpu")))),
    "TypeMeta": (nothing, lambda _: (c10.TypeMeta.Make("float32"), repr(c10.string))),
    "allocate": (nothing, lambda _: c10.GetAllocator("cpu").allocate(100)),
    "raw_allocate": (nothing, lambda _: _allocate_and_free()),
}
_ALLOCATOR = c10.Allocator()


def _allocate_and_free() -> None:
    _ALLOCATOR.raw_deallocate(_ALLOCATOR.raw_allocate(1000))


# Lists made by C; code in Python that leaves memory behind on some versions (`python_leaks`).
MAKES_LISTS = {"make_tensor_proto"}
MAY_LEAK = {"explain", "shares_memory", "audit", "no_copy", "make_tensor_proto"}


@isolated
@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_memory_changes_nothing_and_leaks_nothing(name: str) -> None:
    if name in MAKES_LISTS:
        require_list_new()
    wrong: list[Any] = check_call(CALLS[name], python_may_leak=name in MAY_LEAK)
    assert not wrong, "\n".join(wrong)
