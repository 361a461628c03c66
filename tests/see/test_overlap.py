# SPDX-License-Identifier: Apache-2.0
"""shares_memory: exact for any strides, types and frameworks, and true to numpy.shares_memory."""

from __future__ import annotations

import array
import itertools
import mmap
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace


def shares(a: Any, b: Any) -> bool:
    answer = bridge.shares_memory(a, b)
    assert bridge.shares_memory(b, a) is answer
    return answer


@st.composite
def views(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    """Draw a view of `ROOM` with any strides, negative, zero, odd and overlapping ones too."""
    itemsize = draw(st.sampled_from([1, 2, 4, 8]))
    dims = draw(
        st.lists(st.tuples(st.integers(0, 4), st.integers(-9, 9)), max_size=4).filter(
            lambda dims: sum((n - 1) * abs(s) for n, s in dims if n) < 100
        )
    )
    low = sum((n - 1) * s for n, s in dims if s < 0 and n)
    start = draw(st.integers(-low, 100 - low))
    return np.ndarray(
        [n for n, _ in dims],
        f"V{itemsize}",
        buffer=ROOM,
        offset=start,
        strides=[s for _, s in dims],
    )


ROOM = np.zeros(400, "u1")


@given(views(), views())
def test_as_numpy_has_it(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
    assert shares(a, b) == np.shares_memory(a, b)


@given(views())
def test_an_array_shares_with_itself_unless_it_is_empty(a: np.ndarray[Any, Any]) -> None:
    assert shares(a, a) is (a.size > 0)


def everywhere() -> dict[str, Any]:
    """One memory of 64 bytes, aligned, through everything that has it."""
    t = torch.zeros(16)
    x = bridge.from_dlpack(t)
    workspace.FeedBlob("shared", t)
    blob = workspace.Workspace.current.blobs["shared"]
    found: dict[str, Any] = {
        "torch": t,
        "grad": t.view(4, 4).requires_grad_(),
        "parameter": torch.nn.Parameter(t),
        "detached": t.detach(),
        "at": x,
        "caffe2": caffe2.Tensor(x),
        "impl": x.unsafeGetTensorImpl(),
        "storage": x.storage(),
        "numpy": t.numpy(),
        "bytes of it": t.numpy().view("u1"),
        "memoryview": memoryview(t.numpy()),
        "capsule": x.__dlpack__(),
        "blob": blob,
        "blob's tensor": blob.tensor(),
    }
    return found


def test_objects_of_every_framework_on_one_memory_share() -> None:
    found = everywhere()
    for (one, a), (other, b) in itertools.combinations_with_replacement(found.items(), 2):
        assert shares(a, b), (one, other)
    for name, a in everywhere().items():
        assert not shares(a, found["torch"]), name
    workspace.ResetWorkspace()


def test_a_capsule_is_not_consumed() -> None:
    x = at.zeros(3)
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0))):
        assert shares(capsule, x)
        assert shares(bridge.from_dlpack(capsule), x)
        with pytest.raises(BufferError, match="consumed"):
            shares(capsule, x)


@pytest.mark.parametrize("kind", ["bytearray", "array", "mmap", "bytes"])
def test_buffers_share_with_tensors_and_are_not_held(kind: str) -> None:
    made: Any = {
        "bytearray": lambda: bytearray(16),
        "array": lambda: array.array("i", [1, 2, 3, 4]),
        "mmap": lambda: mmap.mmap(-1, 16),
        "bytes": lambda: bytes(range(16)),
    }[kind]()
    x = bridge.from_dlpack(made)
    assert shares(x, made)
    assert shares(x[1:2], made)
    assert shares(memoryview(made), x)
    assert not shares(x[0:1], x[1:2])
    assert not shares(made, bytearray(16))
    del x
    if kind == "bytearray":
        made.extend(b"more")  # nothing holds it


@pytest.mark.parametrize(
    ("a", "b", "answer"),
    [
        ((slice(None, None, 2),), (slice(1, None, 2),), False),
        ((slice(None, None, 2),), (slice(None, None, 3),), True),
        ((slice(None, None, -1),), (slice(0, 1),), True),
        ((slice(0, 5),), (slice(5, None),), False),
        ((slice(3, 3),), (slice(None),), False),
    ],
)
def test_slices_of_one_memory_share_their_common_elements(a: Any, b: Any, answer: bool) -> None:
    x = at.zeros(10)
    assert shares(x[a], x[b]) is answer
    assert shares(x.numpy()[a], x[b]) is answer


def test_bytes_of_other_types_count() -> None:
    raw = np.zeros(16, "u1")
    assert shares(raw[3:4], raw.view("f8")[:1])
    assert not shares(raw[8:], raw.view("f8")[:1])
    pairs = np.zeros(4, dtype=[("a", "f4"), ("b", "f8")])
    assert not shares(pairs["a"], pairs["b"])
    assert shares(pairs, pairs["b"])


def test_nothing_shares_with_an_empty_tensor() -> None:
    t = torch.zeros(4)
    for empty in (t[:0], at.Tensor(), caffe2.Tensor(), caffe2.Tensor("cpu"), np.zeros((3, 0))):
        assert not shares(empty, t)
        assert not shares(empty, empty)
    assert not shares(caffe2.Tensor([2], "cpu"), t)


def test_many_dimensions_are_compared() -> None:
    x = at.zeros(2, dtype="uint8").as_strided([2] * 62, [1] + [0] * 61)
    assert shares(x, x[(0,) * 61])
    y = torch.zeros(4).as_strided([1] * 100 + [2], [7] * 100 + [2])
    assert shares(y, y)
    assert not shares(y, y.as_strided([2], [2], 1))
    spread = torch.zeros(20).as_strided([2] * 10, [1] * 10)  # each address many times
    assert shares(spread, spread.as_strided([1], [1], 10))
    assert not shares(spread, spread.as_strided([1], [1], 11))


def test_lazy_bits_and_readonly_memory_are_memory() -> None:
    z = torch.ones(3, dtype=torch.complex64)
    assert shares(z.conj(), z)
    assert shares(z.conj().imag, z)
    assert not shares(z.conj().imag, z.real)
    array = np.arange(3.0)
    array.flags.writeable = False
    assert shares(bridge.from_dlpack(array), array)
    foreign = np.arange(3.0).astype(">f8")
    assert shares(foreign, foreign[1:])


def test_strings_share_by_their_elements() -> None:
    c = caffe2.Tensor([3], ["a", "b", "c"])
    assert shares(c, c.Alias())
    assert not shares(c, c.Clone())
    assert not shares(c, np.arange(3))
    objects = np.array(["a", None], dtype=object)
    assert shares(objects, objects[1:])


def test_tensors_without_memory_share_nothing() -> None:
    t = torch.zeros(2, 2)
    assert not shares(torch.zeros(2, 2, device="meta"), t)
    seen = []
    torch.vmap(lambda row: seen.append(shares(row, t)) or row)(t)
    assert seen == [False]
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.zeros(2, 2)
    assert not shares(fake, t)
    shrunk = torch.zeros(4)
    shrunk.untyped_storage().resize_(0)
    assert not shares(shrunk, t)


def test_sparse_and_nested_tensors_share_with_their_parts() -> None:
    sparse = torch.eye(3).to_sparse()
    assert shares(sparse, sparse._values())
    assert shares(sparse, sparse._indices()[0])
    assert not shares(sparse, torch.eye(3))
    values = torch.arange(5.0)
    nested = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 5]))
    assert shares(nested, values)
    assert not shares(nested, values.clone())


def test_an_opaque_tensor_is_an_error() -> None:
    opaque = torch.zeros(2, 2).to_mkldnn()
    with pytest.raises(BufferError, match="cannot be told"):
        bridge.shares_memory(opaque, torch.zeros(2))
    assert shares(opaque, opaque)
    assert not shares(opaque, torch.zeros(0))


def test_strides_made_to_be_hard_end_in_an_error() -> None:
    rng = np.random.default_rng(0)
    hard = [
        np.lib.stride_tricks.as_strided(ROOM, (7,) * 14, rng.integers(10**4, 10**9, 14))
        for _ in range(2)
    ]
    with pytest.raises(BufferError, match="too long"):
        bridge.shares_memory(*hard)


@pytest.mark.parametrize("bad", [[1, 2], 3, "text", None, object(), torch, np.ndarray])
def test_objects_that_are_not_tensors_are_refused(bad: Any) -> None:
    for pair in ((bad, ROOM), (ROOM, bad)):
        with pytest.raises(TypeError, match="shares_memory compares tensors"):
            bridge.shares_memory(*pair)


def test_a_blob_without_a_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="holds no tensor"):
        bridge.shares_memory(caffe2.Blob(), ROOM)


def test_shares_memory_and_explain_change_nothing() -> None:
    t = torch.zeros(4)
    x = bridge.from_dlpack(t)
    with bridge.no_copy(), bridge.audit() as log:
        assert shares(x, t)
        bridge.explain(x)
        bridge.explain(bytearray(3))
    assert len(log) == 0
    t.resize_(1000)  # it was not pinned
    with pytest.raises(c10.EnforceNotMet):
        x.data_ptr()
    assert not shares(x, t)


def test_jax_arrays_are_compared_and_deleted_ones_share_nothing() -> None:
    jax = pytest.importorskip("jax")
    j = jax.numpy.arange(16.0)
    x = bridge.from_dlpack(j)
    assert shares(x, j)
    assert not shares(j, jax.numpy.arange(16.0))
    seen = []
    jax.jit(lambda traced: seen.append(shares(traced, j)) or traced)(j)
    assert seen == [False]
    gone = jax.numpy.arange(3.0)
    gone.delete()
    assert not shares(gone, j)
