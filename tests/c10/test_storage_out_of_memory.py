# SPDX-License-Identifier: Apache-2.0
"""Each allocation of a call of c10's classes may fail; the object is then as before.

More of them are in `tests/test_front_out_of_memory.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from bridge import at, c10
from tests.helpers.isolate import isolated
from tests.helpers.out_of_memory import Call, check_call, require_failing_allocations

require_failing_allocations()


def nothing() -> None:
    return None


def made() -> at.Tensor:
    return at.zeros(2, 3)


def allocator() -> c10.Allocator:
    return c10.GetAllocator("cpu")


class Own:
    pass


CALLS: dict[str, Call] = {
    "Storage": (
        made,
        lambda t: (
            (t.storage().IsType("float32"), t.storage().capacity(), t.storage().data_ptr()),
            (t.storage().device(), t.storage().dtype(), t.storage().is_alias_of(t.storage())),
            (t.storage().nbytes(), t.storage().readonly, t.storage().unique()),
            t.storage().use_count(),
        ),
    ),
    "Storage.reset": (made, lambda t: t.storage().reset()),
    "Storage.UniqueStorageShareExternalPointer": (
        lambda: [made(), bytearray(24)],
        lambda v: v[0].storage().UniqueStorageShareExternalPointer(v[1], "float32", 24),
    ),
    "TensorImpl": (
        lambda: made().unsafeGetTensorImpl(),
        lambda i: (
            (i.defined(), i.device(), i.dim(), i.dtype(), i.get_storage(), i.is_contiguous()),
            (i.numel(), i.owns_memory, i.sizes(), i.storage_offset(), i.strides()),
        ),
    ),
    "UndefinedTensorImpl": (nothing, lambda _: c10.UndefinedTensorImpl.singleton()),
    "Allocator": (
        allocator,
        lambda a: (a.alignment, a.stats.allocated_bytes, a.stats.peak_bytes, a.stats.allocations),
    ),
    "a new Allocator": (nothing, lambda _: c10.Allocator()),
    "allocate_typed": (
        allocator,
        lambda a: (a.allocate_typed("int64", 3).address, a.allocate(8).nbytes),
    ),
    "SetAllocator": (allocator, lambda a: c10.SetAllocator("cpu", a)),
    "ArrayRef": (
        lambda: c10.IntArrayRef([1000, 2000]),
        lambda r: (r.back(), r.front(), r.count(1000), r.empty(), r.equals(r), r.size()),
    ),
    "TypeMeta": (
        nothing,
        lambda _: (
            (c10.float32.Match("float32"), c10.float32.dlpack, c10.float32.is_pod),
            (c10.float32.itemsize, c10.float32.name, c10.float32.numpy, c10.float32.torch),
            c10.string.element_class,
        ),
    ),
    "TypeMeta.Register": (nothing, lambda _: c10.TypeMeta.Register(Own)),
    "DeviceType": (
        nothing,
        lambda _: (c10.DeviceType(1), c10.Device("cuda:1").index, c10.Device("cpu").type),
    ),
    "TensorOptions": (
        nothing,
        lambda _: (
            c10.dtype("float32").has_dtype(),
            c10.device("cpu").has_device(),
            c10.pinned_memory(True).pinned_memory(),
            c10.TensorOptions().dtype("int64").device("cpu").dtype(),
        ),
    ),
    "an error": (nothing, lambda _: str(c10.EnforceNotMet("text", "caller", condition="x"))),
}


@isolated
@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_memory_changes_nothing_and_leaks_nothing(name: str) -> None:
    wrong: list[Any] = check_call(CALLS[name])
    assert not wrong, "\n".join(wrong)
