# SPDX-License-Identifier: Apache-2.0
"""Every method with every kind of bad argument: EnforceNotMet, and everything is as before."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bridge
from bridge import at, c10, caffe2

from .state import filled, state_of


class Index:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __index__(self) -> Any:
        return self.value


def stops_halfway() -> Iterator[Any]:
    yield 2
    yield "no size"


# Makers, since some are used up by a call.
BAD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "float": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "huge float": lambda: 1e300,
    "decimal": lambda: decimal.Decimal(2),
    "complex": lambda: 1j,
    "text": lambda: "x",
    "digits": lambda: "3",
    "bytes": lambda: b"3",
    "dict": lambda: {2: 3},
    "set": lambda: {2, 3},
    "object": object,
    "class": lambda: int,
    "function": lambda: id,  # takes an address, too, so that it is not a bad deleter
    "slice": lambda: slice(1, 2),
    "list of text": lambda: ["2"],
    "list of None": lambda: [None],
    "list of floats": lambda: [1.5],
    "nested": lambda: [[2], [3]],
    "generator": stops_halfway,
    "negative": lambda: -1,
    "negative in a list": lambda: (2, -3),
    "far too large": lambda: 2**62,
    "largest": lambda: 2**63 - 1,
    "past int64": lambda: 2**63,
    "past uint64": lambda: 2**100,
    "below int64": lambda: -(2**64),
    "product overflows": lambda: (2**40, 2**40),
    "zero of too much": lambda: (0, 2**62, 2**62),
    "more than memory": lambda: 2**50,
    "index of text": lambda: Index("x"),
    "index past int64": lambda: Index(2**70),
    "array of floats": lambda: np.array([2.5]),
    "matrix": lambda: np.ones((2, 2), int),
    "foreign byte order": lambda: np.dtype(">f4"),
    "structured": lambda: np.dtype("f4,i4"),
    "datetime": lambda: np.dtype("M8[s]"),
    "objects": lambda: np.dtype("O"),
    "no type": lambda: "no type",
    "no device": lambda: "cuda:x",
    "undefined": caffe2.Tensor,
    "unallocated": lambda: caffe2.Tensor((4,), "cpu"),
    "strided": lambda: at.zeros(2, 3).t(),
    "read-only": lambda: bridge.from_dlpack(b"123456"),
    "too small": lambda: np.zeros(1, np.int8),
    "other numel": lambda: filled((5,)),
}
METHODS = [
    "Resize",
    "ResizeLike",
    "Reshape",
    "Extend",
    "ExtendTo",
    "ShrinkTo",
    "Shrink",
    "ReserveSpace",
    "CopyFrom",
    "ShareData",
    "ShareExternalPointer",
    "is_same",
    "swap",
    "mutable_data",
    "data",
    "raw_mutable_data",
    "size",
    "stride",
    "IsType",
    "dim32",
    "size_from_dim",
    "size_to_dim",
    "canonical_axis_index",
]
SECOND = {
    "Extend": (1,),
    "ExtendTo": (9,),
    "size_between_dim": (0,),
    "ShareExternalPointer": (bytearray(64),),
}
FUNCTIONS: dict[str, Callable[[caffe2.Tensor, Any], object]] = {
    "Tensor": lambda t, bad: caffe2.Tensor(bad),
    "Tensor dims": lambda t, bad: caffe2.Tensor(bad, "cpu"),
    "Tensor device": lambda t, bad: caffe2.Tensor((2,), bad),
    "Tensor type": lambda t, bad: caffe2.Tensor((2,), [1, 2], bad),
    "Tensor copied to": lambda t, bad: caffe2.Tensor(t, bad),
    "empty": lambda t, bad: caffe2.empty(bad, "float32"),
    "empty type": lambda t, bad: caffe2.empty((2,), bad),
    "ReinitializeTensor": lambda t, bad: caffe2.ReinitializeTensor(t, bad, "float32"),
    "ReinitializeTensor type": lambda t, bad: caffe2.ReinitializeTensor(t, (2,), bad),
    "ReinitializeTensor of": lambda t, bad: caffe2.ReinitializeTensor(bad, (2,), "float32"),
    "ReinitializeAndCopyFrom": lambda t, bad: caffe2.ReinitializeAndCopyFrom(t, "cpu", bad),
    "ReinitializeAndCopyFrom to": lambda t, bad: caffe2.ReinitializeAndCopyFrom(
        t, bad, filled((3,))
    ),
    "TensorCPUFromValues": lambda t, bad: caffe2.TensorCPUFromValues(bad, [1, 2]),
    "values": lambda t, bad: caffe2.TensorCPUFromValues((2,), bad),
    # An int is an address, which is believed.
    "storage": lambda t, bad: (
        isinstance(bad, int) or t.storage().UniqueStorageShareExternalPointer(bad, "float32", 8)
    ),
    "storage type": lambda t, bad: t.storage().UniqueStorageShareExternalPointer(
        bytearray(8), bad, 8
    ),
    "storage capacity": lambda t, bad: t.storage().UniqueStorageShareExternalPointer(
        bytearray(8), "float32", bad
    ),
    "nbytes": lambda t, bad: t.ShareExternalPointer(bytearray(64), "float32", bad),
    # What can be called is a deleter, and what it raises is reported when it is called.
    "deleter": lambda t, bad: (
        callable(bad) or t.ShareExternalPointer(bytearray(64), "float32", 0, bad)
    ),
    "element": lambda t, bad: t.data("string").__setitem__(0, bad),
    "elements": lambda t, bad: t.data("string").__setitem__(slice(None), bad),
    "place": lambda t, bad: t.data("string").__setitem__(bad, b"x"),
}


def tensors() -> dict[str, caffe2.Tensor]:
    """One of each kind: shared, of another's memory, not to be written, without elements, ..."""
    typed = filled((2, 3))
    outside = caffe2.Tensor((6,), "cpu")
    outside.ShareExternalPointer(np.arange(6, dtype=np.float32))
    locked = np.arange(6.0)
    locked.flags.writeable = False
    nothing = caffe2.Tensor("cpu")
    return {
        "typed": typed,
        "alias": typed.Alias(),
        "same": typed.UnsafeSharedInstance(),
        "untyped": caffe2.Tensor((4,), "cpu"),
        "strings": filled((3,), "string"),
        "tensors": caffe2.empty((2,), "tensor"),
        "middle": caffe2.Tensor(at.arange(8).slice(0, 3, 6)),
        "scalar": filled(()),
        "no rows": filled((0, 3)),
        "outside": outside,
        "locked": caffe2.Tensor(bridge.from_dlpack(locked)),
        "nothing": nothing,
        "shares nothing": nothing.Alias(),
        "undefined": caffe2.Tensor(),
    }


NAMES = sorted(tensors())


def attempt(name: str, call: Callable[[caffe2.Tensor], object]) -> None:
    """Refused, and then nothing has changed; or not refused, since not all is bad everywhere."""
    everything = tensors()
    before = {key: state_of(tensor) for key, tensor in everything.items()}
    try:
        call(everything[name])
    except (c10.EnforceNotMet, MemoryError):
        assert {key: state_of(tensor) for key, tensor in everything.items()} == before
    for tensor in everything.values():
        state_of(tensor)  # whole, whatever was done


@pytest.mark.filterwarnings("ignore:.*size.. is the old name:DeprecationWarning")  # size(None)
@pytest.mark.parametrize("method", METHODS)
@given(st.sampled_from(NAMES), st.sampled_from(sorted(BAD)))
def test_a_bad_first_argument_is_refused_and_changes_nothing(
    method: str, name: str, bad: str
) -> None:
    attempt(name, lambda tensor: getattr(tensor, method)(BAD[bad]()))


@pytest.mark.parametrize("method", sorted(SECOND))
@given(st.sampled_from(NAMES), st.sampled_from(sorted(BAD)))
def test_a_bad_second_argument_is_refused_and_changes_nothing(
    method: str, name: str, bad: str
) -> None:
    attempt(name, lambda tensor: getattr(tensor, method)(*SECOND[method], BAD[bad]()))


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@given(st.sampled_from(NAMES), st.sampled_from(sorted(BAD)))
def test_a_bad_argument_of_a_function_is_refused_and_changes_nothing(
    function: Callable[[caffe2.Tensor, Any], object], name: str, bad: str
) -> None:
    attempt(name, lambda tensor: function(tensor, BAD[bad]()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["Resize", "Reshape"])
def test_bad_dims_one_by_one_are_refused_and_change_nothing(method: str, name: str) -> None:
    for dims in [(2, None), (2, 1.5), ("2", 3), (2, -1), (2**40, 2**40), (2**63,), (1,) * 3000]:
        attempt(name, lambda tensor, dims=dims: getattr(tensor, method)(*dims))


def test_memory_that_no_machine_has_is_refused_and_changes_nothing() -> None:
    for name in NAMES:
        attempt(name, lambda tensor: tensor.Extend(2**46))
        attempt(name, lambda tensor: tensor.ReserveSpace(2**46))
        attempt(name, lambda tensor: caffe2.ReinitializeTensor(tensor, (2**46,), "float64"))
        attempt(name, lambda tensor: caffe2.ReinitializeTensor(tensor, (2**46,), "string"))
