# SPDX-License-Identifier: Apache-2.0
"""Random DLPack tensors over known memory: the right elements, or a BufferError."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import bridge
from tests.helpers import dlpack_structs as abi
from tests.helpers.check import check_tensor
from tests.helpers.dlpack_producer import ManagedTensor, TensorSpec
from tests.helpers.element_types import IN_BUFFERS, ElementType
from tests.helpers.isolate import isolated

MEMORY = np.arange(4096, dtype=np.uint8) % 251
INT64 = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**31, 2**32, 2**40, 2**61, 2**62, 2**63 - 1, -(2**63), -(2**62)]),
)


@st.composite
def tensors(draw: st.DrawFn) -> tuple[ElementType, TensorSpec]:
    """A tensor of any layout, all of whose elements lie in the second half of MEMORY or so."""
    element = draw(st.sampled_from([row for row in IN_BUFFERS if row.code != abi.BOOL]))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=4)))
    strides = tuple(draw(st.integers(-9, 9)) for _ in shape)
    # At most 4 axes of 2 steps of 9 elements of 16 bytes each way: 1152 bytes.
    offset = 16 * draw(st.integers(80, 160))
    spec = TensorSpec(
        MEMORY.ctypes.data,
        shape,
        strides,
        code=element.code,
        bits=element.bits,
        byte_offset=offset,
        flags=draw(st.sampled_from([0, abi.READ_ONLY])),
        owner=MEMORY,
    )
    return element, spec


@given(tensors(), st.booleans())
def test_any_strided_tensor_is_read(case: tuple[ElementType, TensorSpec], versioned: bool) -> None:
    element, spec = case
    assert spec.shape is not None
    assert spec.strides is not None
    assert spec.address is not None
    managed = ManagedTensor(spec, versioned=versioned)
    x = bridge.from_dlpack(managed.capsule())
    expected = np.lib.stride_tricks.as_strided(
        MEMORY[spec.byte_offset :][: element.itemsize].view(element.numpy),
        spec.shape,
        [stride * element.itemsize for stride in spec.strides],
    )
    check_tensor(
        x,
        spec.shape,
        element,
        strides=spec.strides,
        address=spec.address + spec.byte_offset,
        data=expected.tobytes(),
        readonly=versioned and bool(spec.flags & abi.READ_ONLY),
    )
    del x
    assert managed.deleted == 1


LIES = st.fixed_dictionaries(
    {},
    optional={
        "shape": st.lists(INT64, min_size=2, max_size=2).map(tuple),
        "strides": st.lists(INT64, min_size=2, max_size=2).map(tuple),
        # A few dimensions too many would be read from beyond the arrays, unseen.
        "ndim": st.one_of(st.integers(-(2**31), -1), st.integers(10**6, 2**31 - 1)),
        "code": st.integers(0, 255),
        "bits": st.integers(0, 255),
        "lanes": st.integers(0, 65535),
        "device": st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-2, 2)),
        "version": st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
        "address": st.none(),
    },
)


@given(LIES, st.booleans())
def is_refused_or_harmless(lies: dict[str, Any], versioned: bool) -> None:
    spec = TensorSpec.of_array(MEMORY[:1024].view(np.float32).reshape(16, 16)).but(**lies)
    managed = ManagedTensor(spec, versioned=versioned)
    capsule = managed.capsule()
    try:
        x = bridge.from_dlpack(capsule)
    except BufferError:
        pass
    else:
        # What is taken says what the struct says; its elements may be anywhere, and stay unread.
        assert tuple(x.sizes()) == (spec.shape if spec.ndim is None else spec.shape[: spec.ndim])
        assert x.numel() >= 0
        assert x.nbytes() >= 0
        del x
    del capsule
    assert managed.deleted == 1


@isolated
def test_random_lies_are_refused_or_harmless() -> None:
    is_refused_or_harmless()
