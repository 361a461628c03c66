# SPDX-License-Identifier: Apache-2.0
"""Refused calls: what the error says, and that nothing has changed, whatever was asked."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import at, c10, caffe2
from tests.c10.host_allocators import FailingAllocator

from .state import elements_of, filled, refused, state_of, values

Call = Callable[[caffe2.Tensor], object]


@pytest.fixture
def no_memory() -> Iterator[Callable[[], None]]:
    """Switches to an allocator that has nothing to give."""
    original = c10.GetAllocator("cpu")
    yield lambda: c10.SetAllocator("cpu", FailingAllocator(MemoryError("nothing left")))
    c10.SetAllocator("cpu", original)


def test_the_error_is_a_runtime_error() -> None:
    assert issubclass(c10.EnforceNotMet, RuntimeError)


@pytest.mark.parametrize(
    ("call", "method", "said"),
    [
        (lambda t: t.Reshape((7,)), "Reshape", ["7", "6", "Resize"]),
        (lambda t: t.Resize(-2), "Resize", ["-2"]),
        (lambda t: t.Extend(-1), "Extend", ["-1"]),
        (lambda t: t.ExtendTo(1), "ExtendTo", ["1", "2"]),
        (lambda t: t.ShrinkTo(5), "ShrinkTo", ["5", "2"]),
        (lambda t: t.ShareData(filled((4,))), "ShareData", ["4", "6"]),
        (lambda t: t.CopyFrom(caffe2.Tensor((4,), "cpu")), "CopyFrom", []),
        (lambda t: t.data("int64"), "data", ["int64", "float32"]),
        (lambda t: t.size(7), "size", ["7", "2"]),
        (lambda t: t.canonical_axis_index(-9), "canonical_axis_index", ["-9"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_error_names_the_method_and_the_values(
    call: Call, method: str, said: list[str]
) -> None:
    tensor = filled((2, 3))
    with refused(tensor) as caught:
        call(tensor)
    message = str(caught.value)
    for words in (method, *said):
        assert words in message, message


NEED_MEMORY: dict[str, Call] = {
    "larger type": lambda t: t.mutable_data("complex128"),
    "raw": lambda t: t.raw_mutable_data("complex128"),
    "extend": lambda t: t.Extend(5),
    "extend to": lambda t: t.ExtendTo(50),
    "reserve": lambda t: t.ReserveSpace(50),
    "clone": lambda t: t.Clone(),
    "copy": lambda t: caffe2.Tensor(t, "cpu"),
    "reinitialize": lambda t: caffe2.ReinitializeTensor(t, (50,), "float32"),
    "reinitialize with another type": lambda t: caffe2.ReinitializeTensor(t, (2, 3), "int32"),
}


@pytest.mark.parametrize("call", NEED_MEMORY.values(), ids=NEED_MEMORY)
@pytest.mark.parametrize("shared", [False, True], ids=["alone", "shared"])
def test_a_failing_allocator_leaves_the_tensor_as_it_was(
    call: Call, shared: bool, no_memory: Callable[[], None], request: pytest.FixtureRequest
) -> None:
    tensor = filled((2, 3))
    others = [tensor.Alias()] if shared else []
    no_memory()
    error: Any = (MemoryError, c10.EnforceNotMet) if shared else MemoryError
    with refused(tensor, *others, error=error):
        call(tensor)
    assert values(tensor) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_copy_from_without_memory_leaves_both_tensors_as_they_were(
    dtype: str, no_memory: Callable[[], None]
) -> None:
    tensor, source = filled((2,)), filled((9,), dtype)
    alias = tensor.Alias()
    no_memory()
    with refused(tensor, alias, source, error=MemoryError):
        tensor.CopyFrom(source)
    with refused(tensor, alias, source, error=(MemoryError, c10.EnforceNotMet)):
        caffe2.ReinitializeAndCopyFrom(tensor, "cpu", source)
    undefined = caffe2.Tensor()
    with refused(undefined, source, error=MemoryError):
        caffe2.ReinitializeAndCopyFrom(undefined, "cpu", source)


def test_reinitialize_without_memory_leaves_the_tensor_where_shrinking_frees(
    no_memory: Callable[[], None],
) -> None:
    tensor = filled((2, 3))
    no_memory()
    caffe2.FLAGS.caffe2_keep_on_shrink = False
    try:
        with refused(tensor, error=MemoryError):
            caffe2.ReinitializeTensor(tensor, (2,), "float32")
    finally:
        caffe2.FLAGS.caffe2_keep_on_shrink = True


def test_a_failure_is_over_when_the_memory_is_back(no_memory: Callable[[], None]) -> None:
    original = c10.GetAllocator("cpu")
    tensor = filled((2,))
    no_memory()
    with refused(tensor, error=MemoryError):
        tensor.Extend(4)
    c10.SetAllocator("cpu", original)
    tensor.Extend(4)
    assert values(tensor)[:2] == [1.0, 2.0]


# Random calls, most of them bad: whatever is refused has changed nothing, of any tensor.

# Small, or far too large: what could just be allocated would take the machine's memory.
INTEGERS = st.one_of(
    st.integers(-3, 9), st.sampled_from([-(2**63), -(2**31), 2**50, 2**62, 2**63 - 1, 2**64])
)
DIMS = st.lists(INTEGERS, max_size=3).map(tuple)
TYPES = st.sampled_from(
    ["float32", "float64", "uint8", "bool", "string", "no type", None, "tensor"]
)
ANYTHING = st.sampled_from([None, "word", 1.5, object(), b"bytes", -1, (), [1.5]])
NAMES = st.sampled_from(["typed", "alias", "same", "untyped", "strings", "middle", "undefined"])

CALLS = st.one_of(
    st.tuples(st.just("Resize"), st.one_of(DIMS, ANYTHING)),
    st.tuples(st.just("Reshape"), st.one_of(DIMS, ANYTHING)),
    st.tuples(st.just("Extend"), INTEGERS),
    st.tuples(st.just("Extend"), st.integers(-1, 4), st.floats(-100, 400)),
    st.tuples(st.just("ExtendTo"), INTEGERS, st.floats(-100, 100)),
    st.tuples(st.just("ShrinkTo"), st.one_of(INTEGERS, ANYTHING)),
    st.tuples(st.just("ReserveSpace"), st.one_of(INTEGERS, ANYTHING)),
    st.tuples(st.just("FreeMemory")),
    st.tuples(st.just("mutable_data"), TYPES),
    st.tuples(st.just("raw_mutable_data"), TYPES),
    st.tuples(st.just("data"), TYPES),
    st.tuples(st.just("size"), INTEGERS),
    st.tuples(st.just("size_between_dim"), INTEGERS, INTEGERS),
    st.tuples(st.just("CopyFrom"), NAMES),
    st.tuples(st.just("ShareData"), NAMES),
    st.tuples(st.just("ResizeLike"), NAMES),
    st.tuples(st.just("ShareExternalPointer"), ANYTHING),
    st.tuples(st.just("ReinitializeTensor"), DIMS, TYPES),
    st.tuples(st.just("ReinitializeAndCopyFrom"), NAMES),
)


def some_tensors() -> dict[str, caffe2.Tensor]:
    typed = filled((2, 3))
    return {
        "typed": typed,
        "alias": typed.Alias(),
        "same": typed.UnsafeSharedInstance(),
        "untyped": caffe2.Tensor((4,), "cpu"),
        "strings": filled((3,), "string"),
        "middle": caffe2.Tensor(at.arange(8).slice(0, 3, 6)),
        "undefined": caffe2.Tensor(),
    }


def call(tensors: dict[str, caffe2.Tensor], name: str, method: str, arguments: list[Any]) -> None:
    tensor = tensors[name]
    if method in ("CopyFrom", "ShareData", "ResizeLike"):
        getattr(tensor, method)(tensors[arguments[0]])
    elif method == "ReinitializeAndCopyFrom":
        caffe2.ReinitializeAndCopyFrom(tensor, "cpu", tensors[arguments[0]])
    elif method == "ReinitializeTensor":
        caffe2.ReinitializeTensor(tensor, *arguments)
    else:
        getattr(tensor, method)(*arguments)


@given(st.lists(st.tuples(NAMES, CALLS), min_size=1, max_size=12))
def test_refused_calls_change_nothing(steps: list[tuple[str, tuple[Any, ...]]]) -> None:
    tensors = some_tensors()
    for name, (method, *arguments) in steps:
        before = {key: state_of(tensor) for key, tensor in tensors.items()}
        try:
            call(tensors, name, method, arguments)
        except (c10.EnforceNotMet, MemoryError, TypeError):
            assert {key: state_of(tensor) for key, tensor in tensors.items()} == before
        for tensor in filter(None, tensors.values()):
            assert tensor.numel() == math.prod(tensor.sizes())
            if tensor.dtype_initialized() and tensor.storage_initialized():
                elements_of(tensor)  # as many as there should be, or refused
